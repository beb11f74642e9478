#include "kernels/gpu/append_launch.h"
