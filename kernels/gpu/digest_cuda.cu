#include "kernels/gpu/digest_launch.h"
