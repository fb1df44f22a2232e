"""The page at ``/``."""

from __future__ import annotations

__all__ = ["PAGE"]

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>ofw serve</title>
<h1>ofw serve</h1>
<pre id="newest">waiting for the first second</pre>
<p><a href="model">model</a> <a href="metrics">metrics</a> <a href="openapi.json">endpoints</a>
<script>
new EventSource("events").onmessage = (message) => {
  document.getElementById("newest").textContent = JSON.stringify(JSON.parse(message.data), null, 1);
};
</script>
</html>
"""
