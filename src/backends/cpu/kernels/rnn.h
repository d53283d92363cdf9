// One time step of a recurrent cell for one batch entry, f32, compiled per ISA.
//
// Math. x: input part of the gates with every bias but bias_rh; q: recurrent part; each [gates][hidden],
// gates in ONNX order. Every argument of f, g, h is clipped to [-clip, clip] first where clip > 0.
//
//   LSTM (i o f c):  i = f(xi + qi + pi.c)
//                    F = input_forget ? 1 - i : f(xf + qf + pf.c)
//                    c = F.c + i.g(xc + qc)
//                    o = f(xo + qo + po.c)
//                    h = o.h(c)
//
//   GRU (z r h):     z = f(xz + qz)
//                    r = f(xr + qr)
//                    h = (1 - z).g(candidate) + z.h
//                    candidate = xh + r.(qh + bias_rh) where linear_before_reset, else xh + qh, qh made of
//                    r.h
//
//   RNN:             h = f(x + q)
#pragma once

#include <cstdint>

#include "backends/cpu/isa_pick.h"

namespace hone::cpu {

enum class CellAct : uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,  ///< x >= alpha ? x : 0
  kScaledTanh,       ///< alpha * tanh(beta * x)
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus,
};

struct CellFunction {
  CellAct kind = CellAct::kTanh;
  float alpha = 0, beta = 0;
};

struct CellArgs {
  int64_t hidden = 0;
  CellFunction f, g, h;
  float clip = 0;  ///< 0: none
  bool input_forget = false;
  bool linear_before_reset = false;
  const float* peephole = nullptr;  ///< [3][hidden], i o f; may be null
  const float* bias_rh = nullptr;   ///< [hidden]; null where it is 0
};

/// State h (and c) is read and replaced.
HONE_DECLARE_ISA(void, lstm_row, (const CellArgs& args, const float* x, const float* q, float* h, float* c))
HONE_DECLARE_ISA(void, gru_row, (const CellArgs& args, const float* x, const float* q, float* h))
HONE_DECLARE_ISA(void, rnn_row, (const CellArgs& args, const float* x, const float* q, float* h))
/// rh = f(xr + qr) . h: what the candidate's recurrent product takes when the reset comes before it.
HONE_DECLARE_ISA(void, gru_reset_row,
                 (const CellArgs& args, const float* x, const float* q, const float* h, float* rh))

}  // namespace hone::cpu
