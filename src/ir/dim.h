// A dimension: an integer or a symbolic expression over named symbols.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone::ir {

using SymbolValues = std::map<std::string, int64_t, std::less<>>;

/// Math: a polynomial with integer coefficients over atoms; an atom is a symbol, floordiv(a,b), max(a,b) or
/// min(a,b). The polynomial is kept in canonical order, so equal text means equal expression:
/// `2*N*S+floordiv(M+1,2)-3`. Errors: arithmetic is checked; overflow of a coefficient throws kInvalidModel.
class Dim {
 public:
  Dim() = default;
  Dim(int64_t value) : value_(value) {}  // NOLINT: integers are dimensions
  static Dim symbol(std::string name);
  /// Inverse of text(); throws kInvalidModel on malformed text.
  static Dim parse(std::string_view text);

  bool is_const() const { return sym_ == nullptr; }
  int64_t value() const { return value_; }  ///< REQUIRES is_const()
  std::optional<int64_t> maybe() const { return is_const() ? std::optional<int64_t>(value_) : std::nullopt; }
  std::string text() const;
  /// The value under an assignment of symbols; nullopt when one is unassigned. Division by zero throws.
  std::optional<int64_t> eval(const SymbolValues& symbols) const;
  /// Appends the names of all symbols that occur.
  void symbols(std::vector<std::string>* out) const;
  /// This expression with some symbols replaced.
  Dim substitute(const std::map<std::string, Dim, std::less<>>& with) const;

  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Floor of the quotient. Folds exactly where the divisor divides every term.
  static Dim floordiv(const Dim& a, const Dim& b);
  static Dim ceildiv(const Dim& a, const Dim& b) { return Dim(0) - floordiv(Dim(0) - a, b); }
  static Dim max(const Dim& a, const Dim& b);
  static Dim min(const Dim& a, const Dim& b);

  struct Sym;  // dim.cpp

 private:
  explicit Dim(std::shared_ptr<const Sym> sym) : sym_(std::move(sym)) {}

  int64_t value_ = 0;
  std::shared_ptr<const Sym> sym_;
};

using Dims = std::vector<Dim>;

std::string dims_text(const Dims& dims);  ///< `[N,3,224,224]`
/// The product, symbolically.
Dim product(const Dims& dims);
/// All dimensions as integers, or nullopt when one is symbolic.
std::optional<std::vector<int64_t>> const_dims(const Dims& dims);
Dims to_dims(const std::vector<int64_t>& shape);

}  // namespace hone::ir
