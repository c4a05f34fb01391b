// Operators that train on a CPU: MXNet loads them, and this package builds them.
//
// Each reads and writes its arrays once. Arrays of type T are float32 or bfloat16; all sums are float32.
// Dropout's mask isn't stored: it is computed again from a seed, which is kept beside an operator's results.
// Gradients are written, never added to. So a parameter must come through `identity`, whose gradient may be added.

#include <mxnet/lib_api.h>
#define _opCallFCompute call_with_known_types
#include "lib_api.cc"
#undef _opCallFCompute
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <memory>

using namespace mxnet::ext;
using Options = std::unordered_map<std::string, std::string>;
using Tensors = std::vector<MXTensor>;
using Types = std::vector<int>;
using Shapes = std::vector<std::vector<unsigned>>;
using bfloat16 = uint16_t;  // the first half of a float32

// lib_api.h doesn't know bfloat16, which is 12 in MXNet, and stops at it. So it is told that these are float16,
// which the operators don't take.
constexpr int kBfloat16 = 12;

MX_INT_RET _opCallFCompute(
    fcomp_t function, const char* const* keys, const char* const* values, int options,
    const int64_t** in_shapes, int* in_dims, void** in_data, int* in_types, size_t* in_ids,
    const char** in_devices, int* in_device_ids, int in_count,
    const int64_t** out_shapes, int* out_dims, void** out_data, int* out_types, size_t* out_ids,
    const char** out_devices, int* out_device_ids, int out_count,
    xpu_malloc_t cpu_malloc, void* cpu_memory, xpu_malloc_t gpu_malloc, void* gpu_memory, void* stream,
    sparse_malloc_t sparse_malloc, void* sparse_memory, int* in_storages, int* out_storages,
    void** in_indices, void** out_indices, void** in_pointers, void** out_pointers,
    int64_t* in_index_shapes, int64_t* out_index_shapes, int64_t* in_pointer_shapes,
    int64_t* out_pointer_shapes, void* cpu_random, void* gpu_random) {
  std::replace(in_types, in_types + in_count, kBfloat16, int(kFloat16));
  std::replace(out_types, out_types + out_count, kBfloat16, int(kFloat16));
  return call_with_known_types(
      function, keys, values, options, in_shapes, in_dims, in_data, in_types, in_ids, in_devices,
      in_device_ids, in_count, out_shapes, out_dims, out_data, out_types, out_ids, out_devices,
      out_device_ids, out_count, cpu_malloc, cpu_memory, gpu_malloc, gpu_memory, stream, sparse_malloc,
      sparse_memory, in_storages, out_storages, in_indices, out_indices, in_pointers, out_pointers,
      in_index_shapes, out_index_shapes, in_pointer_shapes, out_pointer_shapes, cpu_random, gpu_random);
}

// ---------------------------------------------------------------- numbers

static inline float as_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

static inline float load(const float* from) { return *from; }
static inline float load(const bfloat16* from) { return as_float(uint32_t(*from) << 16); }
static inline void store(float* to, float x) { *to = x; }
static inline void store(bfloat16* to, float x) {  // the nearest; of two, the even one
  uint32_t bits;
  memcpy(&bits, &x, 4);
  *to = bfloat16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// exp(x) with a relative error of 2e-7; 0 below -87
static inline float fast_exp(float x) {
  float n = std::nearbyint(std::min(std::max(x, -87.f), 88.f) * 1.44269504f);
  float rest = std::min(std::max(x, -87.f), 88.f) - n * 0.693145752f - n * 1.42860677e-6f;
  float series = 1 + rest * (1 + rest * (0.5f + rest * (0.166666667f + rest * (0.0416666667f +
                 rest * (0.00833333333f + rest * 0.00138888889f)))));
  return x < -87 ? 0 : series * as_float(uint32_t(int32_t(n) + 127) << 23);
}

// The normal distribution's function at x, and exp(-x * x / 2); Abramowitz and Stegun 7.1.26, exact to 1e-7
static inline float normal(float x, float& bell) {
  float size = std::fabs(x) * 0.707106781f, t = 1 / (1 + 0.3275911f * size);
  bell = fast_exp(-size * size);
  float tail = 0.5f * bell * t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f +
               t * (-1.453152027f + t * 1.061405429f))));
  return x < 0 ? tail : 1 - tail;
}

// Dropout's factor of an element, 0 or 1 / (1 - rate), from the seed and the element's number: two rounds of a
// multiplicative hash, with half of the seed before each.
struct Dropout {
  uint32_t low = 0, high = 0, bound = 0;
  float scale = 1;

  Dropout(uint64_t seed, float rate)
      : low(uint32_t(seed)), high(uint32_t(seed >> 32)),
        bound(uint32_t(std::min(rate * 4294967296.0, 4294967295.0))), scale(rate > 0 ? 1 / (1 - rate) : 1) {}

  inline bool keeps(uint32_t number) const {
    uint32_t x = number ^ low;
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x = (x + high) * 0x846ca68bU;
    x ^= x >> 16;
    x *= 0x9e3779b1U;
    x ^= x >> 15;
    return x >= bound;
  }
  inline float operator()(uint32_t number) const { return keeps(number) ? scale : 0; }
};

// A seed from MXNet's generator, which mx.random.seed sets.
static uint64_t new_seed(const OpResource& resources, float rate) {
  if (rate <= 0) return 0;
  auto& generator = *resources.get_cpu_rand_states();
  uint64_t high = generator();
  return high << 32 | generator();
}

static float number_of(const Options& options, const char* name) { return std::stof(options.at(name)); }
static int count_of(const Options& options, const char* name) { return std::stoi(options.at(name)); }
static bool is_wide(const MXTensor& array) { return array.dtype == kFloat32; }
static bool is_known(int type) { return type == kFloat32 || type == kBfloat16; }

static MXReturnValue fail(const char* text) {
  MX_ERROR_MSG << text;
  return MX_FAIL;
}

// ---------------------------------------------------------------- normalization

// layer_norm(dropout(y) + residual); without a residual layer_norm(y)
template <bool kAdds, bool kDrops, class T>
static void normalize(const T* y, const float* residual, const float* gamma, const float* beta, float* out,
                      float* moments, long rows, int units, float epsilon, Dropout shared) {
#pragma omp parallel for schedule(static)
  for (long row = 0; row < rows; row++) {
    const Dropout dropout = shared;  // a copy of the thread, which the compiler keeps in registers
    long first = row * units;
    float* __restrict to = out + first;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < units; i++) {
      float x = load(y + first + i);
      if (kDrops) x *= dropout(uint32_t(first) + i);
      if (kAdds) x += residual[first + i];
      to[i] = x;
      sum += x;
    }
    float mean = sum / units;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < units; i++) squares += (to[i] - mean) * (to[i] - mean);
    float factor = 1 / std::sqrt(squares / units + epsilon);
#pragma omp simd
    for (int i = 0; i < units; i++) to[i] = (to[i] - mean) * factor * gamma[i] + beta[i];
    moments[2 * row] = mean;
    moments[2 * row + 1] = factor;
  }
}

template <bool kAdds, bool kDrops, class T>
static void normalize_back(const float* gradient, const T* y, const float* residual, const float* gamma,
                           const float* moments, T* to_y, float* to_residual, float* to_gamma,
                           float* to_beta, long rows, int units, Dropout shared) {
  int threads = omp_get_max_threads();
  std::vector<float> totals(2L * threads * units, 0.f);
#pragma omp parallel num_threads(threads)
  {
    const Dropout dropout = shared;  // a copy of the thread, which the compiler keeps in registers
    std::vector<float> own(4L * units, 0.f);
    float *__restrict hat = own.data(), *__restrict kept = hat + units;
    float *__restrict gammas = kept + units, *__restrict betas = gammas + units;
#pragma omp for schedule(static)
    for (long row = 0; row < rows; row++) {
      long first = row * units;
      float mean = moments[2 * row], factor = moments[2 * row + 1], sum = 0, product = 0;
      const float* __restrict g = gradient + first;
#pragma omp simd
      for (int i = 0; i < units; i++) {
        float x = load(y + first + i);
        if (kDrops) x *= kept[i] = dropout(uint32_t(first) + i);
        if (kAdds) x += residual[first + i];
        hat[i] = (x - mean) * factor;
      }
#pragma omp simd
      for (int i = 0; i < units; i++) {
        gammas[i] += g[i] * hat[i];
        betas[i] += g[i];
      }
#pragma omp simd reduction(+ : sum, product)
      for (int i = 0; i < units; i++) {
        sum += g[i] * gamma[i];
        product += g[i] * gamma[i] * hat[i];
      }
      sum /= units;
      product /= units;
      T* __restrict to = to_y + first;
#pragma omp simd
      for (int i = 0; i < units; i++) {
        float x = factor * (g[i] * gamma[i] - sum - hat[i] * product);
        if (kAdds) to_residual[first + i] = x;
        store(to + i, kDrops ? x * kept[i] : x);
      }
    }
    std::copy(gammas, gammas + 2 * units, totals.data() + 2L * omp_get_thread_num() * units);
  }
  for (int i = 0; i < 2 * units; i++) {
    float sum = 0;
    for (int thread = 0; thread < threads; thread++) sum += totals[2L * thread * units + i];
    (i < units ? to_gamma[i] : to_beta[i - units]) = sum;
  }
}

// Inputs: y, the residual if `adds`, gamma, beta. Outputs: the result, and per row its mean and factor; the last
// row of these is the seed.
static MXReturnValue norm_counts(const Options& options, int* inputs, int* outputs) {
  *inputs = 3 + count_of(options, "adds");
  *outputs = 2;
  return MX_SUCCESS;
}

static MXReturnValue norm_types(const Options&, Types* inputs, Types* outputs) {
  if (inputs->at(0) != -1 && !is_known(inputs->at(0))) return fail("float32 or bfloat16 is expected");
  std::fill(inputs->begin() + 1, inputs->end(), int(kFloat32));
  std::fill(outputs->begin(), outputs->end(), int(kFloat32));
  return MX_SUCCESS;
}

static MXReturnValue norm_shapes(const Options& options, Shapes* inputs, Shapes* outputs) {
  auto shape = inputs->at(0);
  if (shape.empty()) return fail("the shape of y is unknown");
  unsigned units = shape.back(), rows = 1;
  for (size_t axis = 0; axis + 1 < shape.size(); axis++) rows *= shape[axis];
  if (count_of(options, "adds")) inputs->at(1) = shape;
  inputs->at(inputs->size() - 1) = inputs->at(inputs->size() - 2) = {units};
  *outputs = {shape, {rows + 1, 2}};
  return MX_SUCCESS;
}

static MXReturnValue norm_forward(const Options& options, Tensors* inputs, Tensors* outputs,
                                  const OpResource& resources) {
  Tensors &in = *inputs, &out = *outputs;
  int adds = count_of(options, "adds"), units = int(in[0].shape.back());
  long rows = in[0].size() / units;
  float rate = number_of(options, "rate"), *moments = out[1].data<float>();
  uint64_t seed = new_seed(resources, rate);
  memcpy(moments + 2 * rows, &seed, 8);
  auto run = [&](auto* y, auto function) {
    function(y, in[adds].data<float>(), in[1 + adds].data<float>(), in[2 + adds].data<float>(),
             out[0].data<float>(), moments, rows, units, number_of(options, "epsilon"), Dropout(seed, rate));
  };
  auto choose = [&](auto* y) {
    using T = std::remove_pointer_t<decltype(y)>;
    run(y, !adds ? normalize<false, false, T> : rate > 0 ? normalize<true, true, T> : normalize<true, false, T>);
  };
  is_wide(in[0]) ? choose(in[0].data<float>()) : choose(in[0].data<bfloat16>());
  return MX_SUCCESS;
}

static MXReturnValue norm_backward(const Options& options, Tensors* inputs, Tensors* outputs,
                                   const OpResource&) {
  Tensors &in = *inputs, &out = *outputs;  // two gradients, the inputs, two outputs
  int adds = count_of(options, "adds"), units = int(in[2].shape.back());
  long rows = in[2].size() / units;
  float rate = number_of(options, "rate");
  const float* moments = in[6 + adds].data<float>();
  uint64_t seed;
  memcpy(&seed, moments + 2 * rows, 8);
  auto choose = [&](auto* y, auto* to_y) {
    using T = std::remove_pointer_t<decltype(to_y)>;
    auto run = !adds ? normalize_back<false, false, T>
                     : rate > 0 ? normalize_back<true, true, T> : normalize_back<true, false, T>;
    run(in[0].data<float>(), y, in[2 + adds].data<float>(), in[3 + adds].data<float>(), moments, to_y,
        out[adds].data<float>(), out[1 + adds].data<float>(), out[2 + adds].data<float>(), rows, units,
        Dropout(seed, rate));
  };
  is_wide(in[2]) ? choose(in[2].data<float>(), out[0].data<float>())
                 : choose(in[2].data<bfloat16>(), out[0].data<bfloat16>());
  return MX_SUCCESS;
}

REGISTER_OP(zoo_norm)
    .setParseAttrs(norm_counts).setInferType(norm_types).setInferShape(norm_shapes)
    .setForward(norm_forward, "cpu").setBackward(norm_backward, "cpu");

// ---------------------------------------------------------------- GELU

template <class T>
static void gelu(const T* x, T* y, long size) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < size; i++) {
    float value = load(x + i), bell;
    store(y + i, value * normal(value, bell));
  }
}

template <class T>
static void gelu_back(const T* gradient, const T* x, T* to_x, long size) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < size; i++) {
    float value = load(x + i), bell, share = normal(value, bell);
    store(to_x + i, load(gradient + i) * (share + value * 0.398942280f * bell));
  }
}

static MXReturnValue gelu_counts(const Options&, int* inputs, int* outputs) {
  *inputs = *outputs = 1;
  return MX_SUCCESS;
}

static MXReturnValue gelu_types(const Options&, Types* inputs, Types* outputs) {
  if (inputs->at(0) != -1 && !is_known(inputs->at(0))) return fail("float32 or bfloat16 is expected");
  *outputs = *inputs;
  return MX_SUCCESS;
}

static MXReturnValue gelu_shapes(const Options&, Shapes* inputs, Shapes* outputs) {
  *outputs = *inputs;
  return MX_SUCCESS;
}

static MXReturnValue gelu_forward(const Options&, Tensors* inputs, Tensors* outputs, const OpResource&) {
  MXTensor &x = inputs->at(0), &y = outputs->at(0);
  is_wide(x) ? gelu(x.data<float>(), y.data<float>(), x.size())
             : gelu(x.data<bfloat16>(), y.data<bfloat16>(), x.size());
  return MX_SUCCESS;
}

static MXReturnValue gelu_backward(const Options&, Tensors* inputs, Tensors* outputs, const OpResource&) {
  MXTensor &gradient = inputs->at(0), &x = inputs->at(1), &to_x = outputs->at(0);
  is_wide(x) ? gelu_back(gradient.data<float>(), x.data<float>(), to_x.data<float>(), x.size())
             : gelu_back(gradient.data<bfloat16>(), x.data<bfloat16>(), to_x.data<bfloat16>(), x.size());
  return MX_SUCCESS;
}

REGISTER_OP(zoo_gelu)
    .setParseAttrs(gelu_counts).setInferType(gelu_types).setInferShape(gelu_shapes)
    .setForward(gelu_forward, "cpu").setBackward(gelu_backward, "cpu");

// ---------------------------------------------------------------- products of small matrices

#ifdef __AVX512F__
constexpr int kLanes = 16, kTileRows = 6;
#else
constexpr int kLanes = 8, kTileRows = 3;
#endif
typedef float Lanes __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

// Rows x (kVectors * kLanes) elements of c = a b; a[i, k] is at a[i * row_step + k * step], b and c have `columns`.
template <int kRows, int kVectors>
static inline void multiply_tile(const float* a, long row_step, long step, const float* b, float* c,
                                 long columns, int depth) {
  Lanes sums[kRows][kVectors] = {};
  for (int k = 0; k < depth; k++) {
    Lanes right[kVectors];
    for (int v = 0; v < kVectors; v++) right[v] = *(const Lanes*)(b + k * columns + v * kLanes);
    for (int i = 0; i < kRows; i++)
      for (int v = 0; v < kVectors; v++) sums[i][v] += a[i * row_step + k * step] * right[v];
  }
  for (int i = 0; i < kRows; i++)
    for (int v = 0; v < kVectors; v++) *(Lanes*)(c + i * columns + v * kLanes) = sums[i][v];
}

#ifdef __AVX512BF16__
// The same in bfloat16, at twice the speed: of two numbers along the depth, which lie in one uint32, in a of a row
// and in b of two rows. The compiler doesn't find this instruction by itself.
template <int kRows, int kVectors>
static inline void multiply_tile(const uint32_t* a, long row_step, long step, const uint32_t* b, float* c,
                                 long columns, int depth) {
  __m512 sums[kRows][kVectors] = {};
  for (int k = 0; k < depth; k++) {
    __m512bh right[kVectors];
    for (int v = 0; v < kVectors; v++) right[v] = (__m512bh)_mm512_loadu_si512(b + k * columns + v * kLanes);
    for (int i = 0; i < kRows; i++) {
      __m512bh left = (__m512bh)_mm512_set1_epi32(int(a[i * row_step + k * step]));
      for (int v = 0; v < kVectors; v++) sums[i][v] = _mm512_dpbf16_ps(sums[i][v], left, right[v]);
    }
  }
  for (int i = 0; i < kRows; i++)
    for (int v = 0; v < kVectors; v++) _mm512_storeu_ps(c + i * columns + v * kLanes, sums[i][v]);
}
#endif

template <int kVectors, class Unit>
static void multiply_strip(const Unit* a, long row_step, long step, const Unit* b, float* c, int rows,
                           long columns, int depth) {
  int i = 0;
  for (; i + kTileRows <= rows; i += kTileRows)
    multiply_tile<kTileRows, kVectors>(a + i * row_step, row_step, step, b, c + i * columns, columns, depth);
  for (; i < rows; i++)
    multiply_tile<1, kVectors>(a + i * row_step, row_step, step, b, c + i * columns, columns, depth);
}

// c (rows, columns) = a b, at a processor's full speed; the columns are a multiple of kLanes.
template <class Unit>
static void multiply(const Unit* a, long row_step, long step, const Unit* b, float* c, int rows, int columns,
                     int depth) {
  int j = 0;
  for (; j + 4 * kLanes <= columns; j += 4 * kLanes)
    multiply_strip<4>(a, row_step, step, b + j, c + j, rows, columns, depth);
  for (; j < columns; j += kLanes)
    multiply_strip<1>(a, row_step, step, b + j, c + j, rows, columns, depth);
}

// ---------------------------------------------------------------- attention

struct Sizes {
  int length, batch, heads, size, padded;  // `size` is a head's; `padded` is the length in whole vectors

  Sizes(const MXTensor& qkv, const Options& options)
      : length(int(qkv.shape[0])), batch(int(qkv.shape[1])), heads(count_of(options, "heads")),
        size(int(qkv.shape[2]) / (3 * heads)), padded((length + kLanes - 1) / kLanes * kLanes) {}

  long context_step() const { return long(batch) * heads * size; }  // from a position to the next one
  long qkv_step() const { return 3 * context_step(); }
  long scores_of(long head) const { return head * length * length; }
};

// What `multiply` takes for arrays of type T: numbers of float32.
template <class T>
struct Factors {
  using Unit = float;
  using Number = float;
  static constexpr int kNumbers = 1;  // of a unit

  // A head's rows, which lie `step` apart: (length, size) for the left side.
  static void left(const T* from, long step, const Sizes& s, Unit* __restrict to) {
    for (int i = 0; i < s.length; i++)
#pragma omp simd
      for (int d = 0; d < s.size; d++) to[i * s.size + d] = load(from + i * step + d);
  }
  // The same for the right side.
  static void right(const T* from, long step, const Sizes& s, Unit* to) { left(from, step, s, to); }
  // Transposed, (size, padded), for the right side.
  static void across(const T* from, long step, const Sizes& s, Unit* __restrict to) {
    std::fill(to, to + s.size * s.padded, 0);
    for (int i = 0; i < s.length; i++)
      for (int d = 0; d < s.size; d++) to[d * s.padded + i] = load(from + i * step + d);
  }
  // An array (length, padded) for a left side whose step is `padded`, that is, transposed.
  static const Unit* turned(const Number* from, const Sizes&, Unit*) { return from; }
};

#ifdef __AVX512BF16__
// Pairs of bfloat16.
template <>
struct Factors<bfloat16> {
  using Unit = uint32_t;
  using Number = bfloat16;
  static constexpr int kNumbers = 2;

  static void left(const bfloat16* from, long step, const Sizes& s, Unit* to) {
    for (int i = 0; i < s.length; i++) memcpy(to + i * s.size / 2, from + i * step, s.size * sizeof(bfloat16));
  }
  static void right(const bfloat16* from, long step, const Sizes& s, Unit* to) {
    join_rows(from, step, s.length, s.size, to);
  }
  static void across(const bfloat16* from, long step, const Sizes& s, Unit* __restrict to) {
    std::fill(to, to + s.size / 2 * s.padded, 0);
    for (int i = 0; i < s.length; i++)
      for (int d = 0; d < s.size / 2; d++) memcpy(to + d * s.padded + i, from + i * step + 2 * d, 4);
  }
  static const Unit* turned(const bfloat16* from, const Sizes& s, Unit* to) {
    join_rows(from, s.padded, s.length, s.padded, to);
    return to;
  }

 private:
  static void join_rows(const bfloat16* from, long step, int rows, int columns, Unit* __restrict to) {
    for (int i = 0; i < rows; i += 2) {
      const bfloat16 *one = from + i * step, *two = i + 1 < rows ? one + step : nullptr;
#pragma omp simd
      for (int j = 0; j < columns; j++) to[i / 2 * columns + j] = one[j] | (two ? Unit(two[j]) << 16 : 0);
    }
  }
};
#endif

template <class T>
static void give(const float* from, const Sizes& s, T* __restrict to, long step, float scale = 1) {
  for (int i = 0; i < s.length; i++)
#pragma omp simd
    for (int d = 0; d < s.size; d++) store(to + i * step + d, from[i * s.size + d] * scale);
}

// The probabilities are kept with a sign: negative where dropout takes them away.
template <bool kDrops, class T>
static void attend(const T* qkv, const float* mask, T* context, float* signs, const Sizes s,
                   const Dropout shared) {
  using F = Factors<T>;
  using Unit = typename F::Unit;
  using Number = typename F::Number;
  constexpr int kNumbers = F::kNumbers;
  const int length = s.length, size = s.size, heads = s.batch * s.heads;
  const int depth = (length + kNumbers - 1) / kNumbers;
  const long rows = long(length) * size, square = long(length) * s.padded;
  const float root = 1 / std::sqrt(float(size));
#pragma omp parallel
  {
    const Dropout dropout = shared;
    std::unique_ptr<Unit[]> units(new Unit[2 * rows + size * s.padded]);
    std::unique_ptr<float[]> floats(new float[rows + square]);
    std::unique_ptr<Number[]> dropped(new Number[square]());
    Unit *query = units.get(), *value = query + rows, *key = value + rows;
    float *result = floats.get(), *scores = result + rows;
#pragma omp for schedule(static)
    for (int head = 0; head < heads; head++) {
      const T* from = qkv + 3L * head * size;
      F::left(from, s.qkv_step(), s, query);
      F::across(from + size, s.qkv_step(), s, key);
      F::right(from + 2 * size, s.qkv_step(), s, value);
      multiply(query, size / kNumbers, 1, key, scores, length, s.padded, size / kNumbers);
      for (int i = 0; i < length; i++) {
        long first = s.scores_of(head) + long(i) * length;
        float *__restrict row = scores + i * s.padded, *__restrict kept = signs + first;
        Number* __restrict drop = dropped.get() + i * s.padded;
        float top = -INFINITY, sum = 0;
        if (mask) {
#pragma omp simd reduction(max : top)
          for (int j = 0; j < length; j++) top = std::max(top, row[j] = row[j] * root + mask[first + j]);
        } else {
#pragma omp simd reduction(max : top)
          for (int j = 0; j < length; j++) top = std::max(top, row[j] = row[j] * root);
        }
#pragma omp simd reduction(+ : sum)
        for (int j = 0; j < length; j++) sum += row[j] = fast_exp(row[j] - top);
        sum = 1 / sum;
#pragma omp simd
        for (int j = 0; j < length; j++) {
          float p = row[j] * sum;
          bool keeps = !kDrops || dropout.keeps(uint32_t(first) + j);
          kept[j] = keeps ? p : -p;
          store(drop + j, keeps ? p * dropout.scale : 0);
        }
      }
      const Unit* left = reinterpret_cast<const Unit*>(dropped.get());
      multiply(left, s.padded / kNumbers, 1, value, result, length, size, depth);
      give(result, s, context + long(head) * size, s.context_step());
    }
  }
}

// `to_signs` is the gradient of the signed probabilities.
template <class T>
static void attend_back(const T* gradient, const float* to_signs, const T* qkv, const float* signs, T* to_qkv,
                        const Sizes s, float scale) {
  using F = Factors<T>;
  using Unit = typename F::Unit;
  using Number = typename F::Number;
  constexpr int kNumbers = F::kNumbers;
  const int length = s.length, size = s.size, heads = s.batch * s.heads;
  const int depth = (length + kNumbers - 1) / kNumbers;
  const long rows = long(length) * size, square = long(length) * s.padded;
  const float root = 1 / std::sqrt(float(size));
#pragma omp parallel
  {
    std::unique_ptr<Unit[]> units(new Unit[4 * rows + size * s.padded + square]);
    std::unique_ptr<float[]> floats(new float[rows + square]);
    std::unique_ptr<Number[]> numbers(new Number[2 * square]());
    Unit *query = units.get(), *key = query + rows, *left = key + rows, *context = left + rows;
    Unit *value = context + rows, *spare = value + size * s.padded;
    float *result = floats.get(), *products = result + rows;
    Number *scores = numbers.get(), *dropped = scores + square;
#pragma omp for schedule(static)
    for (int head = 0; head < heads; head++) {
      const T *from = qkv + 3L * head * size, *given = gradient + long(head) * size;
      T* to = to_qkv + 3L * head * size;
      F::right(from, s.qkv_step(), s, query);
      F::right(from + size, s.qkv_step(), s, key);
      F::across(from + 2 * size, s.qkv_step(), s, value);
      F::left(given, s.context_step(), s, left);
      F::right(given, s.context_step(), s, context);
      multiply(left, size / kNumbers, 1, value, products, length, s.padded, size / kNumbers);
      for (int i = 0; i < length; i++) {
        long first = s.scores_of(head) + long(i) * length;
        const float *kept = signs + first, *to_kept = to_signs + first;
        float *__restrict row = products + i * s.padded, sum = 0;
        Number *__restrict drop = dropped + i * s.padded, *__restrict score = scores + i * s.padded;
#pragma omp simd reduction(+ : sum)
        for (int j = 0; j < length; j++) {
          float sign = kept[j] < 0 ? -1 : 1, p = std::fabs(kept[j]), factor = kept[j] < 0 ? 0 : scale;
          row[j] = row[j] * factor + to_kept[j] * sign;
          store(drop + j, p * factor);
          sum += p * row[j];
        }
#pragma omp simd
        for (int j = 0; j < length; j++) store(score + j, std::fabs(kept[j]) * (row[j] - sum));
      }
      const Unit* straight = reinterpret_cast<const Unit*>(scores);
      multiply(straight, s.padded / kNumbers, 1, key, result, length, size, depth);
      give(result, s, to, s.qkv_step(), root);
      multiply(F::turned(scores, s, spare), 1, s.padded, query, result, length, size, depth);
      give(result, s, to + size, s.qkv_step(), root);
      multiply(F::turned(dropped, s, spare), 1, s.padded, context, result, length, size, depth);
      give(result, s, to + 2 * size, s.qkv_step());
    }
  }
}

// Inputs: qkv as interleaved_matmul_selfatt_qk takes it, and a mask (batch * heads, length, length) if `masked`,
// which gets no gradient. Outputs: the context (length, batch, heads * size), and the signed probabilities.
static MXReturnValue attention_counts(const Options& options, int* inputs, int* outputs) {
  *inputs = 1 + count_of(options, "masked");
  *outputs = 2;
  return MX_SUCCESS;
}

static MXReturnValue attention_types(const Options&, Types* inputs, Types* outputs) {
  if (inputs->at(0) != -1 && !is_known(inputs->at(0))) return fail("float32 or bfloat16 is expected");
  std::fill(inputs->begin() + 1, inputs->end(), int(kFloat32));
  *outputs = {inputs->at(0), kFloat32};
  return MX_SUCCESS;
}

static MXReturnValue attention_shapes(const Options& options, Shapes* inputs, Shapes* outputs) {
  auto& qkv = inputs->at(0);
  if (qkv.size() != 3) return fail("queries, keys and values must have three axes");
  unsigned heads = count_of(options, "heads");
  if (qkv[2] % (3 * heads * kLanes)) return fail("the size of a head must be a multiple of a vector's");
  *outputs = {{qkv[0], qkv[1], qkv[2] / 3}, {qkv[1] * heads, qkv[0], qkv[0]}};
  if (inputs->size() > 1) inputs->at(1) = outputs->at(1);
  return MX_SUCCESS;
}

static MXReturnValue attention_forward(const Options& options, Tensors* inputs, Tensors* outputs,
                                       const OpResource& resources) {
  Tensors &in = *inputs, &out = *outputs;
  float rate = number_of(options, "rate");
  Dropout dropout(new_seed(resources, rate), rate);
  const float* mask = in.size() > 1 ? in[1].data<float>() : nullptr;
  auto choose = [&](auto* qkv, auto* context) {
    using T = std::remove_pointer_t<decltype(context)>;
    auto run = rate > 0 ? attend<true, T> : attend<false, T>;
    run(qkv, mask, context, out[1].data<float>(), Sizes(in[0], options), dropout);
  };
  is_wide(in[0]) ? choose(in[0].data<float>(), out[0].data<float>())
                 : choose(in[0].data<bfloat16>(), out[0].data<bfloat16>());
  return MX_SUCCESS;
}

static MXReturnValue attention_backward(const Options& options, Tensors* inputs, Tensors* outputs,
                                        const OpResource&) {
  Tensors &in = *inputs, &out = *outputs;  // two gradients, the inputs, two outputs
  const float* signs = in.back().data<float>();
  float scale = Dropout(0, number_of(options, "rate")).scale;
  auto run = [&](auto* gradient, auto* qkv, auto* to_qkv) {
    attend_back(gradient, in[1].data<float>(), qkv, signs, to_qkv, Sizes(in[2], options), scale);
  };
  is_wide(in[2]) ? run(in[0].data<float>(), in[2].data<float>(), out[0].data<float>())
                 : run(in[0].data<bfloat16>(), in[2].data<bfloat16>(), out[0].data<bfloat16>());
  return MX_SUCCESS;
}

REGISTER_OP(zoo_attention)
    .setParseAttrs(attention_counts).setInferType(attention_types).setInferShape(attention_shapes)
    .setForward(attention_forward, "cpu").setBackward(attention_backward, "cpu");

// ---------------------------------------------------------------- the update, which Python calls

extern "C" double zoo_sum_of_squares(const float* x, long size) {
  constexpr long kPiece = 1 << 16;  // a float32 sum over a large matrix loses digits
  std::vector<float> sums((size + kPiece - 1) / kPiece);
#pragma omp parallel for schedule(static)
  for (long piece = 0; piece < long(sums.size()); piece++) {
    long end = std::min(size, (piece + 1) * kPiece);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = piece * kPiece; i < end; i++) sum += x[i] * x[i];
    sums[piece] = sum;
  }
  double total = 0;
  for (float sum : sums) total += sum;
  return total;
}

// As optimizer/host.py: `decay` and `step` have been multiplied by the step's factor.
extern "C" void zoo_adam(float* weight, const float* gradient, float* mean, float* variance, long size,
                         float scale, float bound, float beta1, float beta2, float rest1, float rest2,
                         float epsilon, float step, float decay, float late_decay) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < size; i++) {
    float g = std::min(std::max(gradient[i] * scale, -bound), bound);
    float m = mean[i] = mean[i] * beta1 + g * rest1;
    float v = variance[i] = variance[i] * beta2 + g * g * rest2;
    float w = weight[i] - (m / (std::sqrt(v) + epsilon) * step + weight[i] * decay);
    weight[i] = w - w * late_decay;
  }
}

MXReturnValue initialize(int version) { return version >= 10900 ? MX_SUCCESS : MX_FAIL; }
