// Body of kernels/rnn.cpp, compiled per ISA.

namespace hone::cpu::HONE_ISA_NS {
namespace {

/// The functions that few models use, on one vector in memory.
HONE_NOINLINE void rare_function(const CellFunction& f, float* x) {
  const Vec v = load(x), a = set(f.alpha), b = set(f.beta), nil = zero(), one = set(1.0F);
  Vec y = v;
  switch (f.kind) {
    case CellAct::kSigmoid: y = sigmoid(v); break;
    case CellAct::kTanh: y = tanh(v); break;
    case CellAct::kRelu: y = max(nil, v); break;
    case CellAct::kAffine: y = a * v + b; break;
    case CellAct::kLeakyRelu: y = select(lt(v, nil), a * v, v); break;
    case CellAct::kThresholdedRelu: y = select(lt(v, a), nil, v); break;
    case CellAct::kScaledTanh: y = a * tanh(b * v); break;
    case CellAct::kHardSigmoid: y = min(one, max(nil, a * v + b)); break;
    case CellAct::kElu: y = select(lt(v, nil), a * expm1(v), v); break;
    case CellAct::kSoftsign: y = v / (one + abs(v)); break;
    case CellAct::kSoftplus: y = softplus(v); break;
  }
  store(x, y);
}

/// The branches are the same for every vector of a layer.
HONE_INLINE Vec apply(const CellFunction& f, float clip, Vec v) {
  if (clip > 0) v = min(set(clip), max(set(-clip), v));  // in this order NaN stays
  if (f.kind == CellAct::kSigmoid) return sigmoid(v);
  if (f.kind == CellAct::kTanh) return tanh(v);
  float x[kWidth];
  store(x, v);
  rare_function(f, x);
  return load(x);
}

template <bool kFull>
HONE_INLINE Vec get(const float* p, int n) {
  if constexpr (kFull) return load(p);
  return load_n(p, n);
}
template <bool kFull>
HONE_INLINE void put(float* p, Vec v, int n) {
  if constexpr (kFull)
    store(p, v);
  else
    store_n(p, v, n);
}

template <bool kFull>
HONE_INLINE void lstm_piece(const CellArgs& a, const float* x, const float* q, float* h, float* c, int64_t i,
                            int n) {
  const int64_t m = a.hidden;
  const Vec before = get<kFull>(c + i, n);
  const auto gate = [&](int64_t g) HONE_LAMBDA_INLINE {
    return get<kFull>(x + g * m + i, n) + get<kFull>(q + g * m + i, n);
  };
  const auto peep = [&](int64_t g, Vec v, Vec state) HONE_LAMBDA_INLINE {
    return a.peephole == nullptr ? v : fma(get<kFull>(a.peephole + g * m + i, n), state, v);
  };
  const Vec in = apply(a.f, a.clip, peep(0, gate(0), before));
  const Vec forget = a.input_forget ? set(1.0F) - in : apply(a.f, a.clip, peep(2, gate(2), before));
  const Vec state = fma(forget, before, in * apply(a.g, a.clip, gate(3)));
  const Vec out = apply(a.f, a.clip, peep(1, gate(1), state));
  put<kFull>(c + i, state, n);
  put<kFull>(h + i, out * apply(a.h, a.clip, state), n);
}

template <bool kFull>
HONE_INLINE void gru_piece(const CellArgs& a, const float* x, const float* q, float* h, int64_t i, int n) {
  const int64_t m = a.hidden;
  const auto gate = [&](int64_t g) HONE_LAMBDA_INLINE {
    return get<kFull>(x + g * m + i, n) + get<kFull>(q + g * m + i, n);
  };
  const Vec z = apply(a.f, a.clip, gate(0));
  Vec candidate;
  if (a.linear_before_reset) {
    Vec recurrent = get<kFull>(q + 2 * m + i, n);
    if (a.bias_rh != nullptr) recurrent = recurrent + get<kFull>(a.bias_rh + i, n);
    candidate = fma(apply(a.f, a.clip, gate(1)), recurrent, get<kFull>(x + 2 * m + i, n));
  } else {
    candidate = gate(2);
  }
  const Vec before = get<kFull>(h + i, n);
  put<kFull>(h + i, fma(set(1.0F) - z, apply(a.g, a.clip, candidate), z * before), n);
}

template <bool kFull>
HONE_INLINE void reset_piece(const CellArgs& a, const float* x, const float* q, const float* h, float* rh,
                             int64_t i, int n) {
  const int64_t m = a.hidden + i;
  put<kFull>(rh + i, apply(a.f, a.clip, get<kFull>(x + m, n) + get<kFull>(q + m, n)) * get<kFull>(h + i, n),
             n);
}

template <bool kFull>
HONE_INLINE void rnn_piece(const CellArgs& a, const float* x, const float* q, float* h, int64_t i, int n) {
  put<kFull>(h + i, apply(a.f, a.clip, get<kFull>(x + i, n) + get<kFull>(q + i, n)), n);
}

}  // namespace

void lstm_row(const CellArgs& a, const float* x, const float* q, float* h, float* c) {
  int64_t i = 0;
  for (; i + kWidth <= a.hidden; i += kWidth) lstm_piece<true>(a, x, q, h, c, i, kWidth);
  if (i < a.hidden) lstm_piece<false>(a, x, q, h, c, i, static_cast<int>(a.hidden - i));
}

void gru_row(const CellArgs& a, const float* x, const float* q, float* h) {
  int64_t i = 0;
  for (; i + kWidth <= a.hidden; i += kWidth) gru_piece<true>(a, x, q, h, i, kWidth);
  if (i < a.hidden) gru_piece<false>(a, x, q, h, i, static_cast<int>(a.hidden - i));
}

void gru_reset_row(const CellArgs& a, const float* x, const float* q, const float* h, float* rh) {
  int64_t i = 0;
  for (; i + kWidth <= a.hidden; i += kWidth) reset_piece<true>(a, x, q, h, rh, i, kWidth);
  if (i < a.hidden) reset_piece<false>(a, x, q, h, rh, i, static_cast<int>(a.hidden - i));
}

void rnn_row(const CellArgs& a, const float* x, const float* q, float* h) {
  int64_t i = 0;
  for (; i + kWidth <= a.hidden; i += kWidth) rnn_piece<true>(a, x, q, h, i, kWidth);
  if (i < a.hidden) rnn_piece<false>(a, x, q, h, i, static_cast<int>(a.hidden - i));
}

}  // namespace hone::cpu::HONE_ISA_NS
