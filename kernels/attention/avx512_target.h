// Compiles what lies between CAIRN_AVX512_BEGIN and CAIRN_AVX512_END for processors with AVX-512,
// its bf16 dot products and VBMI, whatever the rest of the program is compiled for.
//
// By pragma and not by a compiler flag for the file, so that no inline function of the standard
// library is compiled with instructions that the linker would then hand to everyone.
#pragma once

#define CAIRN_AVX512_PRAGMA(tokens) _Pragma(#tokens)

#define CAIRN_AVX512_FEATURES \
  "avx,avx2,fma,f16c,avx512f,avx512cd,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16"

#if defined(__clang__)
#define CAIRN_AVX512_ATTRIBUTE(features) \
  CAIRN_AVX512_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define CAIRN_AVX512_BEGIN CAIRN_AVX512_ATTRIBUTE(CAIRN_AVX512_FEATURES)
#define CAIRN_AVX512_END CAIRN_AVX512_PRAGMA(clang attribute pop)
#else
#define CAIRN_AVX512_TARGET(features) CAIRN_AVX512_PRAGMA(GCC target features)
#define CAIRN_AVX512_BEGIN \
  CAIRN_AVX512_PRAGMA(GCC push_options) CAIRN_AVX512_TARGET(CAIRN_AVX512_FEATURES)
#define CAIRN_AVX512_END CAIRN_AVX512_PRAGMA(GCC pop_options)
#endif
