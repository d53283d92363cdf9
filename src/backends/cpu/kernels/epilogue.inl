// Body of epilogue.cpp, compiled per ISA.
namespace hone::cpu::HONE_ISA_NS {

/// Calls f on every vector of the tile: x = f(x).
template <typename F>
HONE_INLINE void map_tile(float* const* x, int n_rows, int64_t column, int64_t n, F f) {
  for (int r = 0; r < n_rows; ++r) {
    float* p = x[r] + column;
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(p + i, f(load(p + i)));
    if (i < n) {
      const int left = static_cast<int>(n - i);
      store_n(p + i, f(load_n(p + i, left)), left);
    }
  }
}

template <typename F>
HONE_INLINE void zip_tile(const EpilogueOperand& b, float* const* x, const int64_t* rows, int n_rows,
                          int64_t column, int64_t n, F f) {
  for (int r = 0; r < n_rows; ++r) {
    float* p = x[r] + column;
    const float* q = b.at(rows[r], column);
    if (b.column_stride == 0) {
      const Vec v = set(*q);
      int64_t i = 0;
      for (; i + kWidth <= n; i += kWidth) store(p + i, f(load(p + i), v));
      if (i < n) {
        const int left = static_cast<int>(n - i);
        store_n(p + i, f(load_n(p + i, left), v), left);
      }
      continue;
    }
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(p + i, f(load(p + i), load(q + i)));
    if (i < n) {
      const int left = static_cast<int>(n - i);
      store_n(p + i, f(load_n(p + i, left), load_n(q + i, left)), left);
    }
  }
}

template <ActKind kAct>
HONE_NOINLINE void activation_tile(float alpha, float beta, float* const* x, int n_rows, int64_t column,
                                   int64_t n) {
  const Vec a = set(alpha);
  const Vec b = set(beta);
  map_tile(
      x, n_rows, column, n, [&](Vec v) __attribute__((always_inline)) { return act<kAct>(v, a, b); });
}

using ActivationTileFn = void (*)(float alpha, float beta, float* const* x, int n_rows, int64_t column,
                                  int64_t n);

template <size_t... kActs>
constexpr auto activation_table(std::index_sequence<kActs...>) {
  return std::array<ActivationTileFn, sizeof...(kActs)>{activation_tile<static_cast<ActKind>(kActs)>...};
}
constexpr auto kActivationTiles =
    activation_table(std::make_index_sequence<static_cast<size_t>(ActKind::kIdentity) + 1>());

HONE_NOINLINE void epilogue_tile(const EpilogueOp* ops, int n_ops, float* const* x, const int64_t* rows,
                                 int n_rows, int64_t column, int64_t n) {
  for (int i = 0; i < n_ops; ++i) {
    const EpilogueOp& op = ops[i];
    switch (op.kind) {
      case EpilogueOp::Kind::kAdd:
        zip_tile(op.operand, x, rows, n_rows, column, n, [](Vec v, Vec w) { return v + w; });
        break;
      case EpilogueOp::Kind::kMul:
        zip_tile(op.operand, x, rows, n_rows, column, n, [](Vec v, Vec w) { return v * w; });
        break;
      case EpilogueOp::Kind::kAct:
        kActivationTiles[static_cast<size_t>(op.act)](op.alpha, op.beta, x, n_rows, column, n);
        break;
      case EpilogueOp::Kind::kCallback:
        for (int r = 0; r < n_rows; ++r) op.callback(op.context, x[r] + column, rows[r], column, n);
        break;
    }
  }
}

}  // namespace hone::cpu::HONE_ISA_NS
