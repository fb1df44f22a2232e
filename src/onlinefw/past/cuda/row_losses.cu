// The built-in losses phi(z, y) of a row, their derivatives, and sums over rows.
//
// Kinds are those of kernels/entries.py, and GAUSSIAN, which has other values than QUADRATIC.

#define QUADRATIC 0
#define BERNOULLI 1
#define POISSON 2
#define EXPONENTIAL 3
#define LOGISTIC 4
#define SIGMOID 5
#define CORRENTROPY 6
#define GAUSSIAN 7

// Beyond so many standard deviations a Gaussian is 0 in floating point.
#define FAR 40.0
// Slopes are cut off here, so that none is infinite: 0 times infinity is not 0.
#define LARGE 1e300

__device__ double expit(double z) {
    double e = exp(-fabs(z));
    return (z >= 0.0 ? 1.0 : e) / (1.0 + e);
}

__device__ double softplus(double z) { return fmax(z, 0.0) + log1p(exp(-fabs(z))); }

__device__ double clipped_error(double sigma, double z, double y) {
    return fmin(fmax((z - y) / sqrt(sigma), -FAR), FAR);
}

__device__ double row_value(int kind, double parameter, double z, double y) {
    switch (kind) {
        case QUADRATIC: return 0.5 * (z - y) * (z - y);
        case GAUSSIAN: return z * (0.5 * z - y);
        case BERNOULLI: return softplus(y == 1.0 ? -z : z);
        case POISSON: {
            double rate = exp(z);
            return isinf(rate) || y == 0.0 ? rate : rate - y * z;
        }
        case EXPONENTIAL: {
            double above = fmax(z + parameter, 0.0) / parameter;
            double total = above * (1.0 + 0.5 * above) - log(-fmin(z, -parameter));
            return isinf(total) ? total : total - y * z;
        }
        case LOGISTIC: return softplus(-y * z);
        case SIGMOID: return expit(-parameter * y * z);
        default: {
            double e = clipped_error(parameter, z, y);
            return -expm1(-0.5 * e * e);
        }
    }
}

__device__ double row_slope(int kind, double parameter, double z, double y) {
    double slope;
    switch (kind) {
        case QUADRATIC:
        case GAUSSIAN: slope = z - y; break;
        case BERNOULLI: slope = y == 1.0 ? -expit(-z) : expit(z); break;
        case POISSON: slope = exp(z) - y; break;
        case EXPONENTIAL:
            slope = -1.0 / fmin(z, -parameter) +
                    fmax(z + parameter, 0.0) / parameter / parameter - y;
            break;
        case LOGISTIC: slope = -y * expit(-y * z); break;
        case SIGMOID: {
            double e = exp(-fabs(parameter * z));  // p (1 - p) is even
            slope = -parameter * y * (e / ((1.0 + e) * (1.0 + e)));
            break;
        }
        default: {
            double e = clipped_error(parameter, z, y);
            slope = e / sqrt(parameter) * exp(-0.5 * e * e);
        }
    }
    return fmin(fmax(slope, -LARGE), LARGE);
}

__device__ double row_bend(int kind, double parameter, double z, double y) {
    switch (kind) {
        case QUADRATIC:
        case GAUSSIAN: return 1.0;
        case BERNOULLI:
        case LOGISTIC: return expit(z) * expit(-z);
        case POISSON: return exp(z);
        case EXPONENTIAL: {
            double root = 1.0 / fmin(z, -parameter);
            return root * root;
        }
        case SIGMOID: {
            double p = expit(-parameter * y * z), q = expit(parameter * y * z);
            return parameter * parameter * p * q * (q - p);
        }
        default: {
            double e = clipped_error(parameter, z, y);
            return (1.0 - e * e) / parameter * exp(-0.5 * e * e);
        }
    }
}

// A curvature >= 0 for second-order models (model_curvature in losses.py).
__device__ double row_model_bend(int kind, double parameter, double z, double y) {
    if (kind == SIGMOID) {
        double p = expit(-parameter * y * z), q = expit(parameter * y * z);
        return parameter * parameter * p * q * fmax(fabs(q - p), 0.25);
    }
    if (kind == CORRENTROPY) {
        double e = clipped_error(parameter, z, y);
        return exp(-0.5 * e * e) / parameter;
    }
    return row_bend(kind, parameter, z, y);
}

__device__ double warp_sum(double value) {
    for (int apart = 16; apart > 0; apart /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}
