/* A decoder's layer for the newest tokens of a few hypotheses, and a map for few rows. See layer_step.py.

   Matrices of few rows are not multiplied faster than the weights are read. So these are read once, where they lie, and
   what is computed between them takes no time of its own. Products are of numbers in the weights' type; their sums, the
   states and the scores are fp32. A number is computed by one thread and always in the same order: results do not depend
   on the number of threads. */

#include "numbers.h"

struct map {
    const void *weight, *bias; /* (outputs, inputs), with inputs a multiple of INPUTS; the bias may be NULL */
    long inputs, outputs;
};

struct norm {
    const void *weight, *bias;
    float epsilon;
};

enum activation { RELU, GELU, SILU, SWIGLU };

struct layer {
    struct map input, output, query, cross_output, inner, outer;
    struct norm norms[3];
    long heads;
    int bf16, norm_first, activation;
};

struct step {
    const void *states;
    void *result;
    void *own; /* keys and values (2, batch, heads, slots, head_width); those of the newest tokens follow `used` others */
    const void *key, *value; /* of the source, (batch, heads, keys, head_width) */
    const void *mask, *memory_mask; /* (batch, beam, slots), and (batch, keys) or NULL: 0, or less than SEEN where hidden */
    const float *cosine, *sine; /* (head_width), as in model/positions.py, or NULL */
    long batch, beam, slots, used, keys;
};

#define SEEN -16384 /* a number in a mask that is below it hides */
#define OUTPUTS 4 /* numbers that are computed together, of each of so many rows: their sums are in registers */
#define ROWS (WIDE / 4)

INLINE lanes pick(const void *numbers, int bf16, long index) {
    if (!bf16) return *(const lanes *)((const float *)numbers + index);
    const void *first = (const uint16_t *)numbers + index; /* gcc 12 converts them more slowly by itself */
#if WIDE == 16
    return (lanes)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(first)), 16);
#else
    return (lanes)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(first)), 16);
#endif
}

INLINE float sum_of(lanes numbers) {
#if WIDE == 16
    __m256 upper = (__m256)_mm512_extractf64x4_pd((__m512d)numbers, 1);
    __m256 eight = _mm512_castps512_ps256((__m512)numbers) + upper;
#else
    __m256 eight = (__m256)numbers;
#endif
    __m128 four = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* In a register: gcc would load it again for each product. */
INLINE lanes held(lanes numbers) {
    __asm__("" : "+v"(numbers));
    return numbers;
}

/* What one instruction multiplies: a register of numbers, or of bf16 two, whose products it adds. */
#ifdef __AVX512BF16__
#define AT_ONCE(bf16) (bf16 ? 2 * WIDE : WIDE)
#else
#define AT_ONCE(bf16) WIDE
#endif

/* Adds to the sums AT_ONCE products for each of some outputs of some rows; `weight` and `x` are the first ones'. Memory
   sends the weights of the next outputs meanwhile. */
INLINE void add_products(
    const void *weight, const void *x, int bf16, long inputs, int rows, int outputs, lanes sums[ROWS][OUTPUTS]
) {
#ifdef __AVX512BF16__
    if (bf16) {
        __m512bh weights[OUTPUTS];
#pragma GCC unroll 4
        for (int k = 0; k < outputs; k++) {
            weights[k] = (__m512bh)_mm512_loadu_si512(row_of(weight, bf16, k * inputs));
            __builtin_prefetch(row_of(weight, bf16, (outputs + k) * inputs));
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            __m512bh numbers = (__m512bh)_mm512_loadu_si512(row_of(x, bf16, r * inputs));
#pragma GCC unroll 4
            for (int k = 0; k < outputs; k++)
                sums[r][k] = (lanes)_mm512_dpbf16_ps((__m512)sums[r][k], numbers, weights[k]);
        }
        return;
    }
#endif
    lanes weights[OUTPUTS];
#pragma GCC unroll 4
    for (int k = 0; k < outputs; k++) {
        weights[k] = held(pick(weight, bf16, k * inputs));
        __builtin_prefetch(row_of(weight, bf16, (outputs + k) * inputs));
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        lanes numbers = held(pick(x, bf16, r * inputs));
#pragma GCC unroll 4
        for (int k = 0; k < outputs; k++) sums[r][k] += numbers * weights[k];
    }
}

/* Some outputs of some rows; both counts are constants, so that the sums are in registers. */
INLINE void multiply(
    const struct map *map, int bf16, const void *x, void *y, int y_bf16, long row, long output, int rows, int outputs
) {
    lanes sums[ROWS][OUTPUTS] = {0};
    long inputs = map->inputs;
    for (long i = 0; i < inputs; i += AT_ONCE(bf16)) {
        const void *weight = row_of(map->weight, bf16, output * inputs + i);
        add_products(weight, row_of(x, bf16, row * inputs + i), bf16, inputs, rows, outputs, sums);
    }
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < outputs; k++) {
            float bias = map->bias ? read(map->bias, bf16, output + k) : 0;
            write(y, y_bf16, (row + r) * map->outputs + output + k, sum_of(sums[r][k]) + bias);
        }
}

INLINE void multiply_rows(
    const struct map *map, int bf16, const void *x, void *y, int y_bf16, long rows, long output, int outputs
) {
    long row = 0;
    for (; row + ROWS <= rows; row += ROWS) multiply(map, bf16, x, y, y_bf16, row, output, ROWS, outputs);
    for (; row + 2 <= rows; row += 2) multiply(map, bf16, x, y, y_bf16, row, output, 2, outputs);
    if (row < rows) multiply(map, bf16, x, y, y_bf16, row, output, 1, outputs);
}

INLINE void multiply_all(const struct map *map, int bf16, const void *x, void *y, int y_bf16, long rows) {
#pragma omp for
    for (long output = 0; output < map->outputs; output += OUTPUTS) {
        if (output + OUTPUTS <= map->outputs) {
            multiply_rows(map, bf16, x, y, y_bf16, rows, output, OUTPUTS);
            continue;
        }
        for (long last = output; last < map->outputs; last++) multiply_rows(map, bf16, x, y, y_bf16, rows, last, 1);
    }
}

/* y (rows, outputs) = x (rows, inputs) · weight (transposed) + bias, by all threads together; x has the weights' type. */
static __attribute__((noinline)) void map_rows(
    const struct map *map, int bf16, const void *x, void *y, int y_bf16, long rows
) {
    if (bf16)
        multiply_all(map, 1, x, y, y_bf16, rows);
    else
        multiply_all(map, 0, x, y, y_bf16, rows);
}

/* From fp32 to fp32, perhaps in the same place, or to bf16 if `to_bf16`. */
INLINE void normalize(const struct norm *norm, int bf16, const float *from, void *to, int to_bf16, long width) {
    float mean = 0, variance = 0;
#pragma omp simd reduction(+ : mean)
    for (long i = 0; i < width; i++) mean += from[i];
    mean /= width;
#pragma omp simd reduction(+ : variance)
    for (long i = 0; i < width; i++) variance += (from[i] - mean) * (from[i] - mean);
    float scale = 1 / sqrtf(variance / width + norm->epsilon);
#pragma omp simd
    for (long i = 0; i < width; i++)
        write(to, to_bf16, i, (from[i] - mean) * scale * read(norm->weight, bf16, i) + read(norm->bias, bf16, i));
}

/* What the next map reads of a row's states. */
INLINE void enter(const struct norm *norm, int bf16, const float *states, void *entered, long width) {
    if (norm)
        normalize(norm, bf16, states, entered, bf16, width);
    else
        for (long i = 0; i < width; i++) write(entered, bf16, i, states[i]);
}

/* Adds what sublayer `place` has computed to the states, and makes what the next one reads. */
INLINE void leave(
    const struct layer *layer, int bf16, int place, const float *change, float *states, void *entered, long rows,
    long width
) {
#pragma omp for
    for (long row = 0; row < rows; row++) {
        float *own = states + row * width;
        for (long i = 0; i < width; i++) own[i] += change[row * width + i];
        if (!layer->norm_first) normalize(layer->norms + place, bf16, own, own, 0, width);
        const struct norm *next = layer->norm_first ? layer->norms + place + 1 : NULL;
        if (place < 2) enter(next, bf16, own, row_of(entered, bf16, row * width), width);
    }
}

static void turn(float *numbers, const float *cosine, const float *sine, long width) {
    for (long i = 0; i < width / 2; i++) {
        float first = numbers[i], second = numbers[width / 2 + i], s = sine[width / 2 + i];
        numbers[i] = first * cosine[i] - second * s;
        numbers[width / 2 + i] = second * cosine[i] + first * s;
    }
}

/* The query becomes the mean of the values, weighted by the softmax of query · key, or 0 if none is to be seen; there is
   room for `count` scores. What is hidden is not read, as it may not have been written yet. */
INLINE void attend(
    float *query, const void *keys, const void *values, const void *mask, int bf16, long mask_start, long count,
    long width, float *scores
) {
    float largest = -INFINITY, sum = 0, scale = 1 / sqrtf(width);
    for (long j = 0; j < count; j++) {
        scores[j] = -INFINITY;
        if (mask && read(mask, bf16, mask_start + j) < SEEN) continue;
        lanes product = {0};
        for (long i = 0; i < width; i += WIDE)
            product += *(const lanes *)(query + i) * pick(keys, bf16, j * width + i);
        scores[j] = sum_of(product) * scale;
        largest = scores[j] > largest ? scores[j] : largest;
    }
    memset(query, 0, width * sizeof(float));
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < count; j++) {
        scores[j] = exponential(scores[j] - largest);
        sum += scores[j];
    }
    for (long j = 0; j < count; j++) {
        if (mask && read(mask, bf16, mask_start + j) < SEEN) continue;
        for (long i = 0; i < width; i += WIDE)
            *(lanes *)(query + i) += scores[j] / sum * pick(values, bf16, j * width + i);
    }
}

INLINE float sigmoid(float x) {
    float power = exponential(x < 0 ? x : -x);
    return (x < 0 ? power : 1) / (1 + power);
}

INLINE float activated(int activation, float x) {
    if (activation == RELU) return x < 0 ? 0 : x; /* NaN remains */
    if (activation == GELU) return x / 2 * (1 + erff(x * (float)M_SQRT1_2));
    return x * sigmoid(x);
}

/* What the inner map has computed, (rows, count) or with a gate (rows, 2 · count), to what the outer one reads. */
INLINE void activate(int activation, int bf16, const float *inner, void *result, long rows, long count) {
    int gated = activation == SWIGLU;
    for (long row = 0; row < rows; row++) {
        const float *from = inner + row * count * (1 + gated);
#pragma omp for nowait
        for (long i = 0; i < count; i++)
            write(result, bf16, row * count + i, activated(activation, from[i]) * (gated ? from[count + i] : 1));
    }
#pragma omp barrier
}

/* Where in memory is what lies between the maps, and how many numbers that is. Each has room for fp32. */
struct layout {
    long states, entered, change, wide, active, scores, longest, all;
};

static struct layout layout_of(const struct layer *layer, const struct step *step) {
    long rows = step->batch * step->beam, states = rows * layer->output.outputs;
    long fused = layer->input.outputs, inner = layer->inner.outputs;
    struct layout at = {.states = 0, .entered = states, .change = 2 * states, .wide = 3 * states};
    at.active = at.wide + rows * (inner > fused ? inner : fused);
    at.scores = at.active + rows * layer->outer.inputs;
    at.longest = step->slots > step->keys ? step->slots : step->keys;
    at.all = at.scores + rows * layer->heads * at.longest;
    return at;
}

/* By all threads together. */
INLINE void compute(const struct layer *layer, const struct step *step, int bf16, float *memory) {
    long rows = step->batch * step->beam, width = layer->output.outputs, heads = layer->heads, head = width / heads;
    struct layout at = layout_of(layer, step);
    float *states = memory + at.states, *change = memory + at.change, *wide = memory + at.wide;
    void *entered = memory + at.entered, *active = memory + at.active;
#pragma omp for
    for (long row = 0; row < rows; row++) {
        float *own = states + row * width;
        for (long i = 0; i < width; i++) own[i] = read(step->states, bf16, row * width + i);
        enter(layer->norm_first ? layer->norms : NULL, bf16, own, row_of(entered, bf16, row * width), width);
    }

    map_rows(&layer->input, bf16, entered, wide, 0, rows);
#pragma omp for
    for (long unit = 0; unit < rows * heads; unit++) {
        long row = unit / heads, place = unit % heads, batch = row / step->beam;
        float *query = wide + row * 3 * width + place * head, *key = query + width, *value = key + width;
        if (step->cosine) {
            turn(query, step->cosine, step->sine, head);
            turn(key, step->cosine, step->sine, head);
        }
        long first = (batch * heads + place) * step->slots * head, newest = step->used + row % step->beam;
        void *keys = row_of(step->own, bf16, first);
        void *values = row_of(keys, bf16, step->batch * heads * step->slots * head);
        for (long i = 0; i < head; i++) {
            write(keys, bf16, newest * head + i, key[i]);
            write(values, bf16, newest * head + i, value[i]);
        }
        float *scores = memory + at.scores + unit * at.longest;
        attend(query, keys, values, step->mask, bf16, row * step->slots, step->slots, head, scores);
        for (long i = 0; i < head; i++) write(entered, bf16, row * width + place * head + i, query[i]);
    }
    map_rows(&layer->output, bf16, entered, change, 0, rows);
    leave(layer, bf16, 0, change, states, entered, rows, width);

    map_rows(&layer->query, bf16, entered, wide, 0, rows);
#pragma omp for
    for (long unit = 0; unit < rows * heads; unit++) {
        long row = unit / heads, place = unit % heads, batch = row / step->beam;
        long first = (batch * heads + place) * step->keys * head, from = row * width + place * head;
        void *keys = row_of(step->key, bf16, first), *values = row_of(step->value, bf16, first);
        float *scores = memory + at.scores + unit * at.longest;
        attend(
            wide + from, keys, values, step->memory_mask, bf16, batch * step->keys, step->keys, head, scores
        );
        for (long i = 0; i < head; i++) write(entered, bf16, from + i, wide[from + i]);
    }
    map_rows(&layer->cross_output, bf16, entered, change, 0, rows);
    leave(layer, bf16, 1, change, states, entered, rows, width);

    map_rows(&layer->inner, bf16, entered, wide, 0, rows);
    activate(layer->activation, bf16, wide, active, rows, layer->outer.inputs);
    map_rows(&layer->outer, bf16, active, change, 0, rows);
    leave(layer, bf16, 2, change, states, entered, rows, width);
#pragma omp for
    for (long i = 0; i < rows * width; i++) write(step->result, bf16, i, states[i]);
}

/* The layer's states for the newest tokens, whose keys and values are stored. Returns whether there was memory for it. */
int decode(const struct layer *layer, const struct step *step, int threads) {
    float *memory = malloc(layout_of(layer, step).all * sizeof(float));
    if (!memory) return 0;
#pragma omp parallel num_threads(threads)
    {
        if (layer->bf16)
            compute(layer, step, 1, memory);
        else
            compute(layer, step, 0, memory);
    }
    free(memory);
    return 1;
}

/* result (rows, outputs) = x (rows, inputs) · weight (transposed) + bias, all of one type. */
void map_few(const struct map *map, int bf16, const void *x, void *result, long rows, int threads) {
#pragma omp parallel num_threads(threads)
    map_rows(map, bf16, x, result, bf16, rows);
}
