#include "kernels/gpu/block_copy_launch.h"
