/* What training computes between matrix products, in one pass where torch's operations make many. See functions.py.

   A row is computed by one thread and always in the same order: results do not depend on the number of threads. The
   parallel loops use the OpenMP runtime that torch has loaded, and so its threads. */

#include "numbers.h"

/* The finalizer of MurmurHash3 (Appleby): each bit of the result depends on all bits. */
INLINE uint32_t mixed(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x85ebca6b;
    x = (x ^ (x >> 13)) * 0xc2b2ae35;
    return x ^ (x >> 16);
}

#define BLOCK 1024 /* numbers that are dropped at a time, a multiple of the four that share a draw */

INLINE void drop_block(
    const void *numbers, void *result, int bf16, long start, int count, uint64_t seed, int threshold, float scale
) {
    uint32_t draws[BLOCK / 4];
    for (uint32_t i = 0; i < BLOCK / 4; i++)
        draws[i] = mixed(mixed((uint32_t)(start / 4) + i + (uint32_t)seed) ^ (uint32_t)(seed >> 32));
    const uint8_t *bytes = (const uint8_t *)draws;
#pragma omp simd
    for (int i = 0; i < count; i++)
        write(result, bf16, start + i, read(numbers, bf16, start + i) * (bytes[i] < threshold ? 0 : scale));
}

/* Dropout: a number is multiplied by 0 where its byte, a function of its place and the seed, is below `threshold`, and by
   `scale` elsewhere. */
void drop(
    const void *numbers, void *result, int bf16, long count, uint64_t seed, int threshold, float scale, int threads
) {
#pragma omp parallel for num_threads(threads)
    for (long start = 0; start < count; start += BLOCK) {
        int size = count - start < BLOCK ? count - start : BLOCK;
        if (bf16)
            drop_block(numbers, result, 1, start, size, seed, threshold, scale);
        else
            drop_block(numbers, result, 0, start, size, seed, threshold, scale);
    }
}

/* Half of what _replace_by_gradient of training/r_drop.py gives for a logit of either pass, but for the one-hot part.

   `power` and `other` are exponentials in this pass and in the other one, `apart` the difference of the logits. */
INLINE float pull(float power, float other, float apart, float own, float slope, float other_slope) {
    return power * (own + slope * apart) - other * other_slope;
}

INLINE void r_drop_row(
    void *first, void *second, int bf16, long target, long vocabulary, float smoothing, float weight, float *powers,
    float *loss, float *nll
) {
    float *others = powers + vocabulary;
    float largest = -INFINITY, other_largest = -INFINITY, logits = 0;
#pragma omp simd reduction(max : largest, other_largest) reduction(+ : logits)
    for (long i = 0; i < vocabulary; i++) {
        float p = read(first, bf16, i), q = read(second, bf16, i);
        largest = p > largest ? p : largest;
        other_largest = q > other_largest ? q : other_largest;
        logits += p + q;
    }
    float sum = 0, other_sum = 0, expected = 0, other_expected = 0;
#pragma omp simd reduction(+ : sum, other_sum, expected, other_expected)
    for (long i = 0; i < vocabulary; i++) {
        float p = read(first, bf16, i), q = read(second, bf16, i);
        powers[i] = exponential(p - largest);
        others[i] = exponential(q - other_largest);
        sum += powers[i];
        other_sum += others[i];
        expected += powers[i] * (p - q);
        other_expected += others[i] * (p - q);
    }
    expected /= sum;
    other_expected /= other_sum;
    float p = read(first, bf16, target), q = read(second, bf16, target);
    *nll = (largest + logf(sum) - p + other_largest + logf(other_sum) - q) / 2;
    *loss = *nll + (smoothing * (p + q - logits / vocabulary) + weight * (expected - other_expected)) / 2;
    float uniform = smoothing / vocabulary / 2, hot = (1 - smoothing) / 2 + uniform;
    float slope = weight / sum / 2, own = (1 + weight - weight * expected) / sum / 2;
    float other_slope = weight / other_sum / 2, other_own = (1 + weight + weight * other_expected) / other_sum / 2;
    for (long i = 0; i < vocabulary; i++) {
        float apart = read(first, bf16, i) - read(second, bf16, i);
        write(first, bf16, i, pull(powers[i], others[i], apart, own, slope, other_slope) - uniform);
        write(second, bf16, i, pull(others[i], powers[i], -apart, other_own, other_slope, slope) - uniform);
    }
    write(first, bf16, target, pull(powers[target], others[target], p - q, own, slope, other_slope) - hot);
    write(second, bf16, target, pull(others[target], powers[target], q - p, other_own, other_slope, slope) - hot);
}

/* Logits (2, rows, vocabulary) of two passes become the gradient of R-Drop's loss; that and -log p are written besides,
   both means of the passes. Returns whether there was memory for it. */
int r_drop(
    void *logits, int bf16, const int64_t *targets, long rows, long vocabulary, float smoothing, float weight,
    float *loss, float *nll, int threads
) {
    int enough = 1;
#pragma omp parallel num_threads(threads) reduction(&& : enough)
    {
        float *powers = malloc(2 * vocabulary * sizeof(float));
        enough = powers != NULL;
#pragma omp for
        for (long row = 0; row < rows; row++) {
            if (!powers) continue;
            void *p = row_of(logits, bf16, row * vocabulary), *q = row_of(logits, bf16, (rows + row) * vocabulary);
            if (bf16)
                r_drop_row(p, q, 1, targets[row], vocabulary, smoothing, weight, powers, loss + row, nll + row);
            else
                r_drop_row(p, q, 0, targets[row], vocabulary, smoothing, weight, powers, loss + row, nll + row);
        }
        free(powers);
    }
    return enough;
}

/* Attention of one head in one sentence, in matrices of fp32 whose sides are multiples of LANES, zero beyond. */

#define ROWS 8

INLINE long padded(long count) {
    return (count + LANES - 1) / LANES * LANES;
}

/* c (m, n) = a (m, k) · b (k, n), each stored by rows, or a by columns if `turned`. */
INLINE void product(const float *a, int turned, const float *b, float *c, long m, long k, long n) {
    for (long i = 0; i < m; i += ROWS)
        for (long j = 0; j < n; j += WIDE) {
            lanes sums[ROWS] = {0};
            for (long d = 0; d < k; d++) {
                lanes right = *(const lanes *)(b + d * n + j);
#pragma GCC unroll 8
                for (long row = 0; row < ROWS; row++)
                    sums[row] += (turned ? a[d * m + i + row] : a[(i + row) * k + d]) * right;
            }
#pragma GCC unroll 8
            for (long row = 0; row < ROWS; row++) *(lanes *)(c + (i + row) * n + j) = sums[row];
        }
}

INLINE void transpose(const float *from, float *to, long rows, long columns) {
    for (long column = 0; column < columns; column++)
        for (long row = 0; row < rows; row++) to[column * rows + row] = from[row * columns + column];
}

/* One head's rows (length, width), each `scale` times, turned as in model/positions.py if there is a rotation. */
INLINE void load(
    const void *numbers, int bf16, long start, long stride, long length, long width, float scale, const float *cosine,
    const float *sine, float *to
) {
    for (long i = 0; i < length; i++) {
        long from = start + i * stride;
        for (long d = 0; d < width; d++) to[i * width + d] = read(numbers, bf16, from + d) * scale;
        if (!cosine) continue;
        float *first = to + i * width, *second = first + width / 2;
        const float *c = cosine + i * width, *s = sine + i * width + width / 2;
        for (long d = 0; d < width / 2; d++) {
            float x = first[d], y = second[d];
            first[d] = x * c[d] - y * s[d];
            second[d] = y * c[d] + x * s[d];
        }
    }
    memset(to + length * width, 0, (padded(length) - length) * width * sizeof(float));
}

/* The gradient of what `load` has read. */
INLINE void store(
    const float *from, void *numbers, int bf16, long start, long stride, long length, long width, float scale,
    const float *cosine, const float *sine
) {
    for (long i = 0; i < length; i++) {
        const float *first = from + i * width, *second = first + width / 2;
        long to = start + i * stride;
        if (!cosine) {
            for (long d = 0; d < width; d++) write(numbers, bf16, to + d, first[d] * scale);
            continue;
        }
        const float *c = cosine + i * width, *s = sine + i * width + width / 2;
        for (long d = 0; d < width / 2; d++) {
            write(numbers, bf16, to + d, (first[d] * c[d] + second[d] * s[d]) * scale);
            write(numbers, bf16, to + width / 2 + d, (second[d] * c[d] - first[d] * s[d]) * scale);
        }
    }
}

/* Scores (keys, queries) become weights; those of padding, and of the future if `causal`, 0. */
INLINE void softmax(float *scores, const void *mask, int bf16, long mask_start, int queries, int keys, int causal) {
    int rows = padded(keys), columns = padded(queries);
    for (int start = 0; start < columns; start += LANES) {
        float largest[LANES], sum[LANES];
        for (int lane = 0; lane < LANES; lane++) largest[lane] = -INFINITY, sum[lane] = 0;
        for (int j = 0; j < keys; j++) {
            float *row = scores + j * columns + start, shown = mask ? read(mask, bf16, mask_start + j) : 0;
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++) {
                row[lane] = causal && start + lane < j ? -INFINITY : row[lane] + shown;
                largest[lane] = row[lane] > largest[lane] ? row[lane] : largest[lane];
            }
        }
        for (int j = 0; j < keys; j++) {
            float *row = scores + j * columns + start;
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++) {
                row[lane] = exponential(row[lane] - largest[lane]);
                sum[lane] += row[lane];
            }
        }
        for (int lane = 0; lane < LANES; lane++) sum[lane] = 1 / sum[lane];
        for (int j = 0; j < keys; j++) {
            float *row = scores + j * columns + start;
            for (int lane = 0; lane < LANES; lane++) row[lane] *= sum[lane];
        }
    }
    memset(scores + keys * columns, 0, (rows - keys) * columns * sizeof(float));
}

/* Of weights p (n, m) and their gradient: that of the scores, in its place. */
INLINE void softmax_backward(const float *p, float *gradient, long n, long m) {
    for (long start = 0; start < m; start += WIDE) {
        lanes mean = {0};
        for (long j = 0; j < n; j++) mean += *(const lanes *)(p + j * m + start) * *(lanes *)(gradient + j * m + start);
        for (long j = 0; j < n; j++) {
            lanes *row = (lanes *)(gradient + j * m + start);
            *row = *(const lanes *)(p + j * m + start) * (*row - mean);
        }
    }
}

/* What attention reads and writes, and its sizes. `query` is (batch, queries, …), `key` and `value` are (batch, keys, …), with
   the strides of the tokens; of each they are the first heads · width numbers, one head after the other. The result is
   (batch, queries, heads · width), and each gradient is laid out like what it is a gradient of. */
struct attention {
    const void *query, *key, *value, *mask; /* the mask is (batch, keys), or NULL */
    const float *cosine, *sine;             /* (length, width), or NULL */
    void *result;                           /* written unless `backward`; */
    const void *towards;                    /* otherwise read, the gradient of the result, */
    void *of_query, *of_key, *of_value;     /* and written, those of the inputs */
    long query_stride, key_stride, batch, heads, queries, keys, width;
    int bf16, causal, backward;
};

/* Scores and weights are (keys, queries): sums over keys go down columns, and so many of them are made at a time. */
INLINE void attend_head(const struct attention *a, int bf16, long unit, float *room) {
    long m = padded(a->queries), n = padded(a->keys), width = a->width, all = a->heads * width;
    float *q = room, *k = q + m * width, *v = k + n * width, *across = v + n * width, *p = across + m * width;
    float *g = p + m * n, *of_p = g + m * width, *out = of_p + m * n;
    long batch = unit / a->heads, offset = unit % a->heads * width;
    long query_at = batch * a->queries * a->query_stride + offset, key_at = batch * a->keys * a->key_stride + offset;
    long result_at = batch * a->queries * all + offset;
    float scale = 1 / sqrtf(width);
    load(a->query, bf16, query_at, a->query_stride, a->queries, width, scale, a->cosine, a->sine, q);
    load(a->key, bf16, key_at, a->key_stride, a->keys, width, 1, a->cosine, a->sine, k);
    load(a->value, bf16, key_at, a->key_stride, a->keys, width, 1, NULL, NULL, v);
    transpose(q, across, m, width);
    product(k, 0, across, p, n, width, m);
    softmax(p, a->mask, bf16, batch * a->keys, a->queries, a->keys, a->causal);
    if (!a->backward) {
        product(p, 1, v, out, m, n, width);
        store(out, a->result, bf16, result_at, all, a->queries, width, 1, NULL, NULL);
        return;
    }
    load(a->towards, bf16, result_at, all, a->queries, width, 1, NULL, NULL, g);
    product(p, 0, g, out, n, m, width);
    store(out, a->of_value, bf16, key_at, a->key_stride, a->keys, width, 1, NULL, NULL);
    transpose(g, across, m, width);
    product(v, 0, across, of_p, n, width, m);
    softmax_backward(p, of_p, n, m);
    product(of_p, 1, k, out, m, n, width);
    store(out, a->of_query, bf16, query_at, a->query_stride, a->queries, width, scale, a->cosine, a->sine);
    product(of_p, 0, q, out, n, m, width);
    store(out, a->of_key, bf16, key_at, a->key_stride, a->keys, width, 1, a->cosine, a->sine);
}

/* Returns whether there was memory for it. */
int attend(const struct attention *a, int threads) {
    long m = padded(a->queries), n = padded(a->keys), longest = m > n ? m : n;
    long numbers = (3 * m + 2 * n + longest) * a->width + 2 * m * n;
    int enough = 1;
#pragma omp parallel num_threads(threads) reduction(&& : enough)
    {
        float *room = malloc(numbers * sizeof(float));
        enough = room != NULL;
#pragma omp for
        for (long unit = 0; unit < a->batch * a->heads; unit++) {
            if (!room) continue;
            if (a->bf16)
                attend_head(a, 1, unit, room);
            else
                attend_head(a, 0, unit, room);
        }
        free(room);
    }
    return enough;
}
