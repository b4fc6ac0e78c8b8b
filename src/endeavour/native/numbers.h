/* Numbers in fp32 or bf16, a register of them, and the exponential. */

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Numbers are fp32 or, if `bf16`, bf16: the upper 16 bits of fp32. */

INLINE float read(const void *numbers, int bf16, long index) {
    if (!bf16) return ((const float *)numbers)[index];
    uint32_t bits = (uint32_t)((const uint16_t *)numbers)[index] << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* To bf16 it is rounded to the nearest, and of two as near to the even one. */
INLINE void write(void *numbers, int bf16, long index, float number) {
    if (!bf16) {
        ((float *)numbers)[index] = number;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    ((uint16_t *)numbers)[index] = (uint16_t)(number != number ? 0x7fc0 : rounded); /* NaN remains */
}

INLINE void *row_of(const void *numbers, int bf16, long index) {
    return (char *)numbers + index * (bf16 ? 2 : 4);
}

/* exp(x) for x ≤ 0, and 0 below -87: 2^n · e^r with |r| ≤ log(2) / 2, and e^r by its Taylor series, the rest of which is
   below 1e-8. */
INLINE float exponential(float x) {
    float n = nearbyintf((x >= -87 ? x : 0) * 1.44269504f); /* 0 for what is no number, too */
    float r = x - n * 0.693359375f + n * 2.12194440e-4f; /* log(2) in two parts, the first exact in products with n */
    float series = 1.f / 5040;
    series = series * r + 1.f / 720;
    series = series * r + 1.f / 120;
    series = series * r + 1.f / 24;
    series = series * r + 1.f / 6;
    series = series * r + 1.f / 2;
    series = series * r + 1;
    series = series * r + 1;
    uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87 ? 0 : series * power;
}

/* What a register holds: of a type that is wider, sums would not stay in registers. */
#if defined __AVX512F__
#define WIDE 16
#elif defined __AVX2__
#define WIDE 8
#else
#error "without AVX2 torch's operations are faster"
#endif
typedef float lanes __attribute__((vector_size(4 * WIDE), aligned(4)));

#define LANES 16 /* the width of a head is a multiple of this, */
#define INPUTS 32 /* and what a map reads of this */
_Static_assert(LANES % WIDE == 0 && INPUTS % (2 * WIDE) == 0, "whole registers, in bf16 too");
