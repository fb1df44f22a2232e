// Each pointwise loss once: value, slope and bend of one prediction. CUDA kernels include this file, too.
#pragma once
#include "base.hpp"

enum LossKind : i64 { SQUARE, BERNOULLI, POISSON, EXPONENTIAL, LOGISTIC, SIGMOID, CORRENTROPY };

// Beyond so many standard deviations a Gaussian is 0 in floating point.
constexpr double FAR_OFF = 40.0;

HERE double softplus(double z) { return most(z, 0.0) + log1p(exp(-fabs(z))); }
HERE double expit(double z) {
  double e = exp(-fabs(z));
  return (z >= 0.0 ? 1.0 : e) / (1.0 + e);
}

struct Loss {
  i64 kind;
  double parameter;  // the floor, the sharpness, or sigma

  HERE double error(double z, double y) const { return clamped((z - y) / sqrt(parameter), -FAR_OFF, FAR_OFF); }

  // phi(z, y); for a Gaussian the square, which differs from it by a constant.
  HERE double value(double z, double y) const {
    switch (kind) {
      case SQUARE: return 0.5 * square(z - y);
      case BERNOULLI: return softplus(y == 1.0 ? -z : z);
      case POISSON: { double rate = exp(z); return isinf(rate) || y == 0.0 ? rate : rate - y * z; }
      case EXPONENTIAL: {
        double above = most(z + parameter, 0.0) / parameter;
        double all = above * (1.0 + 0.5 * above) - log(-least(z, -parameter));
        return isinf(all) ? all : all - y * z;
      }
      case LOGISTIC: return softplus(-y * z);
      case SIGMOID: return expit(-parameter * y * z);
      default: return -expm1(-0.5 * square(error(z, y)));
    }
  }

  // phi'(z, y).
  HERE double slope(double z, double y) const {
    switch (kind) {
      case SQUARE: return z - y;
      case BERNOULLI: return y == 1.0 ? -expit(-z) : expit(z);
      case POISSON: return exp(z) - y;
      case EXPONENTIAL: return -1.0 / least(z, -parameter) + most(z + parameter, 0.0) / parameter / parameter - y;
      case LOGISTIC: return -y * expit(-y * z);
      case SIGMOID: { double m = parameter * y * z; return -parameter * y * expit(m) * expit(-m); }
      default: { double e = error(z, y); return e / sqrt(parameter) * exp(-0.5 * e * e); }
    }
  }

  // A curvature >= 0 for second-order models: phi'' itself where phi is convex.
  HERE double bend(double z, double y) const {
    switch (kind) {
      case SQUARE: return 1.0;
      case BERNOULLI:
      case LOGISTIC: return expit(z) * expit(-z);
      case POISSON: return exp(z);
      case EXPONENTIAL: return square(1.0 / least(z, -parameter));
      case SIGMOID: {
        double p = expit(-parameter * y * z), q = expit(parameter * y * z);
        return parameter * parameter * p * q * most(fabs(q - p), 0.25);
      }
      default: return exp(-0.5 * square(error(z, y))) / parameter;
    }
  }

  // The prediction for all that belongs to a mean of the targets, of n observations.
  HERE double centre(double mean, double n) const {
    double share;
    switch (kind) {
      case SQUARE:
      case CORRENTROPY: return mean;
      case BERNOULLI: share = (mean * n + 0.5) / (n + 1.0); return log(share / (1.0 - share));
      case LOGISTIC: share = (0.5 * (1.0 + mean) * n + 0.5) / (n + 1.0); return log(share / (1.0 - share));
      case POISSON: return log((mean * n + 0.5) / (n + 0.5));
      case EXPONENTIAL: return n > 0.0 ? -1.0 / mean : -1.0;
      default: return 0.0;
    }
  }
};
