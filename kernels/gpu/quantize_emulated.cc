#include "kernels/gpu/quantize_launch.h"
