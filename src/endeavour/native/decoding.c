/* A decoder's layer for the newest tokens of a few hypotheses, and a map for few rows. See layer_step.py.

   Matrices of few rows are not multiplied faster than the weights are read. So these are read once, where they lie, and
   what is computed between them takes no time of its own. States, sums and scores are fp32 whatever the weights are. A
   number is computed by one thread and always in the same order: results do not depend on the number of threads. */

#include "numbers.h"

struct map {
    const void *weight, *bias; /* (outputs, inputs), with inputs a multiple of LANES; the bias may be NULL */
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
    int half, norm_first, activation;
};

struct step {
    const void *states;
    void *result;
    void *own; /* keys and values (2, batch, heads, slots, head_width); those of the newest tokens follow `used` others */
    const void *key, *value; /* of the source, (batch, heads, keys, head_width) */
    const void *mask, *memory_mask; /* (batch, beam, slots), and (batch, keys) or NULL: 0, or HIDDEN */
    const float *cosine, *sine; /* (head_width), as in model/positions.py, or NULL */
    long batch, beam, slots, used, keys;
};

/* Numbers of a row between the layer's maps, at most. */
static long widest(const struct layer *layer) {
    long inner = layer->inner.outputs, fused = layer->input.outputs;
    return inner > fused ? inner : fused;
}

#define HIDDEN -16384 /* a number in a mask that is below it hides */
#define OUTPUTS 4 /* numbers that are computed together, of each of so many rows: their sums are in registers */
#define ROWS (WIDE / 4)

INLINE lanes load(const void *numbers, int half, long index) {
    if (!half) return *(const lanes *)((const float *)numbers + index);
    typedef uint16_t halves __attribute__((vector_size(2 * WIDE), aligned(2)));
    typedef uint32_t wholes __attribute__((vector_size(4 * WIDE)));
    return (lanes)(__builtin_convertvector(*(const halves *)((const uint16_t *)numbers + index), wholes) << 16);
}

INLINE float sum_of(lanes numbers) {
    float sum = 0;
    for (int lane = 0; lane < WIDE; lane++) sum += numbers[lane];
    return sum;
}

/* Some outputs of some rows; both counts are constants, so that the sums are in registers. */
INLINE void multiply(
    const struct map *map, int half, const float *x, void *y, int y_half, long row, long output, int rows, int outputs
) {
    lanes sums[ROWS][OUTPUTS] = {0};
    for (long i = 0; i < map->inputs; i += WIDE) {
        lanes weights[OUTPUTS];
#pragma GCC unroll 4
        for (int k = 0; k < outputs; k++) weights[k] = load(map->weight, half, (output + k) * map->inputs + i);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            lanes numbers = *(const lanes *)(x + (row + r) * map->inputs + i);
#pragma GCC unroll 4
            for (int k = 0; k < outputs; k++) sums[r][k] += numbers * weights[k];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < outputs; k++) {
            float bias = map->bias ? read(map->bias, half, output + k) : 0;
            write(y, y_half, (row + r) * map->outputs + output + k, sum_of(sums[r][k]) + bias);
        }
}

INLINE void multiply_rows(
    const struct map *map, int half, const float *x, void *y, int y_half, long rows, long output, int outputs
) {
    long row = 0;
    for (; row + ROWS <= rows; row += ROWS) multiply(map, half, x, y, y_half, row, output, ROWS, outputs);
    for (; row < rows; row++) multiply(map, half, x, y, y_half, row, output, 1, outputs);
}

INLINE void multiply_all(const struct map *map, int half, const float *x, void *y, int y_half, long rows) {
#pragma omp for
    for (long output = 0; output < map->outputs; output += OUTPUTS) {
        if (output + OUTPUTS <= map->outputs) {
            multiply_rows(map, half, x, y, y_half, rows, output, OUTPUTS);
            continue;
        }
        for (long last = output; last < map->outputs; last++) multiply_rows(map, half, x, y, y_half, rows, last, 1);
    }
}

/* y (rows, outputs) = x (rows, inputs) · weight (transposed) + bias, by all threads together. */
static __attribute__((noinline)) void map_rows(
    const struct map *map, int half, const float *x, void *y, int y_half, long rows
) {
    if (half)
        multiply_all(map, 1, x, y, y_half, rows);
    else
        multiply_all(map, 0, x, y, y_half, rows);
}

static void normalize(const struct norm *norm, int half, const float *from, float *to, long width) {
    float mean = 0, variance = 0;
#pragma omp simd reduction(+ : mean)
    for (long i = 0; i < width; i++) mean += from[i];
    mean /= width;
#pragma omp simd reduction(+ : variance)
    for (long i = 0; i < width; i++) variance += (from[i] - mean) * (from[i] - mean);
    float scale = 1 / sqrtf(variance / width + norm->epsilon);
#pragma omp simd
    for (long i = 0; i < width; i++)
        to[i] = (from[i] - mean) * scale * read(norm->weight, half, i) + read(norm->bias, half, i);
}

/* Adds what sublayer `place` has computed to the states, and makes what the next one reads. */
static void leave(
    const struct layer *layer, int half, int place, const float *change, float *states, float *entered, long rows,
    long width
) {
#pragma omp for
    for (long row = 0; row < rows; row++) {
        float *own = states + row * width, *next = entered + row * width;
        for (long i = 0; i < width; i++) own[i] += change[row * width + i];
        if (!layer->norm_first) {
            normalize(layer->norms + place, half, own, own, width);
            memcpy(next, own, width * sizeof(float));
        } else if (place < 2)
            normalize(layer->norms + place + 1, half, own, next, width);
    }
}

static void turn(float *numbers, const float *cosine, const float *sine, long width) {
    for (long i = 0; i < width / 2; i++) {
        float first = numbers[i], second = numbers[width / 2 + i], s = sine[width / 2 + i];
        numbers[i] = first * cosine[i] - second * s;
        numbers[width / 2 + i] = second * cosine[i] + first * s;
    }
}

/* The mean of the values, weighted by the softmax of query · key; there is room for `count` scores. */
INLINE void attend(
    const float *query, const void *keys, const void *values, const void *mask, int half, long mask_start, long count,
    long width, float *scores, float *result
) {
    float largest = -INFINITY, sum = 0, scale = 1 / sqrtf(width);
    for (long j = 0; j < count; j++) {
        if (mask && read(mask, half, mask_start + j) < HIDDEN) {
            scores[j] = -INFINITY;
            continue;
        }
        lanes product = {0};
        for (long i = 0; i < width; i += WIDE)
            product += *(const lanes *)(query + i) * load(keys, half, j * width + i);
        scores[j] = sum_of(product) * scale;
        largest = scores[j] > largest ? scores[j] : largest;
    }
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < count; j++) {
        scores[j] = exponential(scores[j] - largest);
        sum += scores[j];
    }
    memset(result, 0, width * sizeof(float));
    for (long j = 0; j < count; j++) {
        if (!scores[j]) continue; /* a hidden one's memory may not have been written yet */
        for (long i = 0; i < width; i += WIDE)
            *(lanes *)(result + i) += scores[j] / sum * load(values, half, j * width + i);
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
static void activate(int activation, const float *inner, float *result, long rows, long count) {
    for (long row = 0; row < rows; row++) {
        float *to = result + row * count;
        const float *from = inner + row * count * (activation == SWIGLU ? 2 : 1);
#pragma omp for nowait
        for (long i = 0; i < count; i++)
            to[i] = activated(activation, from[i]) * (activation == SWIGLU ? from[count + i] : 1);
    }
#pragma omp barrier
}

/* By all threads together. `room` holds what `room_for` counts. */
INLINE void compute(const struct layer *layer, const struct step *step, int half, float *room) {
    long rows = step->batch * step->beam, width = layer->output.outputs, heads = layer->heads, head = width / heads;
    long longest = step->slots > step->keys ? step->slots : step->keys, units = rows * heads;
    float *states = room, *entered = states + rows * width, *change = entered + rows * width;
    float *wide = change + rows * width, *active = wide + rows * widest(layer);
    float *scores = active + rows * layer->outer.inputs;
#pragma omp for
    for (long row = 0; row < rows; row++) {
        float *own = states + row * width, *next = entered + row * width;
        for (long i = 0; i < width; i++) own[i] = read(step->states, half, row * width + i);
        if (layer->norm_first)
            normalize(layer->norms, half, own, next, width);
        else
            memcpy(next, own, width * sizeof(float));
    }

    map_rows(&layer->input, half, entered, wide, 0, rows);
#pragma omp for
    for (long unit = 0; unit < units; unit++) {
        long row = unit / heads, place = unit % heads, batch = row / step->beam;
        float *query = wide + row * 3 * width + place * head, *key = query + width, *value = key + width;
        if (step->cosine) {
            turn(query, step->cosine, step->sine, head);
            turn(key, step->cosine, step->sine, head);
        }
        long first = (batch * heads + place) * step->slots * head, newest = step->used + row % step->beam;
        void *keys = row_of(step->own, half, first);
        void *values = row_of(keys, half, step->batch * heads * step->slots * head);
        for (long i = 0; i < head; i++) {
            write(keys, half, newest * head + i, key[i]);
            write(values, half, newest * head + i, value[i]);
        }
        attend(
            query, keys, values, step->mask, half, row * step->slots, step->slots, head, scores + unit * longest,
            entered + row * width + place * head
        );
    }
    map_rows(&layer->output, half, entered, change, 0, rows);
    leave(layer, half, 0, change, states, entered, rows, width);

    map_rows(&layer->query, half, entered, wide, 0, rows);
#pragma omp for
    for (long unit = 0; unit < units; unit++) {
        long row = unit / heads, place = unit % heads, batch = row / step->beam;
        long first = (batch * heads + place) * step->keys * head, from = row * width + place * head;
        attend(
            wide + from, row_of((void *)step->key, half, first), row_of((void *)step->value, half, first),
            step->memory_mask, half, batch * step->keys, step->keys, head, scores + unit * longest, entered + from
        );
    }
    map_rows(&layer->cross_output, half, entered, change, 0, rows);
    leave(layer, half, 1, change, states, entered, rows, width);

    map_rows(&layer->inner, half, entered, wide, 0, rows);
    activate(layer->activation, wide, active, rows, layer->outer.inputs);
    map_rows(&layer->outer, half, active, change, 0, rows);
    leave(layer, half, 2, change, states, entered, rows, width);
#pragma omp for
    for (long i = 0; i < rows * width; i++) write(step->result, half, i, states[i]);
}

/* The layer's states for the newest tokens, whose keys and values are stored. Returns whether there was memory for it. */
int decode(const struct layer *layer, const struct step *step, int threads) {
    long rows = step->batch * step->beam, longest = step->slots > step->keys ? step->slots : step->keys;
    long each = 3 * layer->output.outputs + widest(layer) + layer->outer.inputs + layer->heads * longest;
    float *room = malloc(rows * each * sizeof(float));
    if (!room) return 0;
#pragma omp parallel num_threads(threads)
    {
        if (layer->half)
            compute(layer, step, 1, room);
        else
            compute(layer, step, 0, room);
    }
    free(room);
    return 1;
}

/* result (rows, outputs) = x (rows, inputs) · weight (transposed) + bias, all of the type of `half`. */
int map_few(const struct map *map, int half, const void *x, void *result, long rows, int threads) {
    float *exact = malloc(rows * map->inputs * sizeof(float));
    if (!exact) return 0;
    for (long i = 0; i < rows * map->inputs; i++) exact[i] = read(x, half, i);
#pragma omp parallel num_threads(threads)
    map_rows(map, half, exact, result, half, rows);
    free(exact);
    return 1;
}
