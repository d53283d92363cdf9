#include "api/samples.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "hone/error.h"
#include "hone/io.h"
#include "ops/interpreter.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void bad(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::kInvalidData, where + ": " + what, {.stage = "read"});
}

std::string interface_text(const TensorInfo& t) {
  std::string s = "'" + t.name + "' " + dtype_name(t.dtype);
  if (!t.ranked) return s + " of any rank";
  s += "[";
  for (size_t i = 0; i < t.dims.size(); ++i) s += (i ? "," : "") + t.dims[i];
  return s + "]";
}

std::optional<int64_t> fixed_dim(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return {};
  return std::stoll(text);
}

/// Does a sample of this shape fit the input? Symbolic dimensions take any extent.
bool fits(const TensorInfo& input, const int64_t* dims, size_t rank) {
  if (!input.ranked) return true;
  if (input.dims.size() != rank) return false;
  for (size_t i = 0; i < rank; ++i)
    if (const auto d = fixed_dim(input.dims[i]); d && *d != dims[i]) return false;
  return true;
}

/// Types that .npy cannot express are written, hence read, as f32 and i32.
Tensor to_dtype(const Tensor& t, DType want, const std::string& where) {
  if (t.dtype() == want) return t;
  const bool narrow_float = is_narrow_float(want) && want != DType::kF16;
  if (narrow_float && t.dtype() == DType::kF32) return ops::convert(t, want);
  if (dtype_bits(want) < 8 && is_integer(want) && is_integer(t.dtype())) return ops::convert(t, want);
  bad(where, std::string("holds ") + dtype_name(t.dtype()) + ", the input takes " + dtype_name(want) +
                 "; convert it (NumPy: array.astype)");
}

struct Feed {
  std::vector<NamedTensor> arrays;  ///< in the order of the inputs
  std::vector<char> many;           ///< is array i one sample per leading index?
  int64_t samples = 1;
};

/// Matches the arrays of one file or feed with the inputs, naming everything that is wrong at once.
Feed match(std::vector<NamedTensor> given, const std::vector<TensorInfo>& inputs, const std::string& where) {
  std::string wrong;
  const auto say = [&](const std::string& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
  for (const NamedTensor& a : given)
    if (std::none_of(inputs.begin(), inputs.end(), [&](const TensorInfo& t) { return t.name == a.name; }))
      say("'" + a.name + "' is not an input");
  Feed feed;
  std::string counted_by;
  for (const TensorInfo& input : inputs) {
    const auto it =
        std::find_if(given.begin(), given.end(), [&](const NamedTensor& a) { return a.name == input.name; });
    if (it == given.end()) {
      say("input " + interface_text(input) + " is missing");
      continue;
    }
    const Shape& shape = it->tensor.shape();
    const bool one = fits(input, shape.data(), shape.size());
    const bool many = !one && !shape.empty() && fits(input, shape.data() + 1, shape.size() - 1);
    if (!one && !many) {
      say("'" + input.name + "' is " + it->tensor.type_text() + ", the input is " + interface_text(input));
      continue;
    }
    if (many) {
      if (counted_by.empty()) {
        counted_by = input.name;
        feed.samples = shape[0];
      } else if (feed.samples != shape[0]) {
        say("'" + input.name + "' holds " + std::to_string(shape[0]) + " samples, '" + counted_by + "' " +
            std::to_string(feed.samples));
      }
    }
    feed.arrays.push_back({input.name, to_dtype(it->tensor, input.dtype, where + ": '" + input.name + "'")});
    feed.many.push_back(many);
  }
  if (!wrong.empty()) {
    std::string list;
    for (const TensorInfo& t : inputs) list += (list.empty() ? "" : ", ") + interface_text(t);
    bad(where, wrong + "; the inputs are: " + list);
  }
  if (feed.samples == 0) bad(where, "'" + counted_by + "' holds no samples");
  return feed;
}

/// Sample `i` of a stacked array: a view that keeps the array alive.
Tensor slice(const Tensor& t, int64_t i) {
  const Shape shape(t.shape().begin() + 1, t.shape().end());
  const int64_t bits = numel(shape) * dtype_bits(t.dtype());
  if (bits % 8 != 0) {  // sub-byte samples that do not begin on a byte
    Tensor wide = ops::convert(t, is_float(t.dtype()) ? DType::kF32 : DType::kI32);
    return ops::convert(slice(wide, i), t.dtype());
  }
  auto owner = std::make_shared<Tensor>(t);
  return Tensor::view(t.dtype(), shape, static_cast<const char*>(t.raw()) + i * (bits / 8), owner);
}

std::vector<std::string> npz_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, failed))
    if (e.path().extension() == ".npz" && e.is_regular_file()) files.push_back(e.path().string());
  if (failed)
    throw Error(ErrorCode::kInvalidArgument, "cannot read the folder '" + folder + "'", {.stage = "read"});
  if (files.empty()) bad(folder, "the folder holds no .npz file");
  std::sort(files.begin(), files.end());
  return files;
}

/// First byte that is not white space; 0 when there is none.
char first_char(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char c = 0;
  while (in.get(c))
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return c;
  return 0;
}

}  // namespace

std::vector<std::vector<NamedTensor>> read_samples(const std::string& path,
                                                   const std::vector<TensorInfo>& inputs, bool* stacked) {
  std::error_code failed;
  if (!fs::exists(path, failed))
    throw Error(ErrorCode::kInvalidArgument, "no such file or folder: '" + path + "'", {.stage = "read"});
  std::vector<Feed> feeds;
  if (fs::is_directory(path, failed)) {
    for (const std::string& file : npz_files(path)) feeds.push_back(match(read_npz(file), inputs, file));
  } else if (const char c = first_char(path); c == '[' || c == '{') {
    size_t i = 0;
    for (auto& arrays : api::read_polygraphy_feeds(path))
      feeds.push_back(match(std::move(arrays), inputs, path + ": feed " + std::to_string(i++)));
    if (feeds.empty()) bad(path, "holds no feed");
  } else {
    feeds.push_back(match(read_npz(path), inputs, path));
  }
  bool several = feeds.size() > 1;
  std::vector<std::vector<NamedTensor>> samples;
  for (const Feed& feed : feeds) {
    several |= std::any_of(feed.many.begin(), feed.many.end(), [](char m) { return m != 0; });
    for (int64_t i = 0; i < feed.samples; ++i) {
      std::vector<NamedTensor> sample;
      for (size_t k = 0; k < feed.arrays.size(); ++k)
        sample.push_back(
            {feed.arrays[k].name, feed.many[k] ? slice(feed.arrays[k].tensor, i) : feed.arrays[k].tensor});
      samples.push_back(std::move(sample));
    }
  }
  if (stacked != nullptr) *stacked = several;
  return samples;
}

void write_outputs(const std::string& path, const std::vector<std::vector<NamedTensor>>& samples,
                   bool stacked) {
  if (samples.empty()) return write_npz(path, {});
  if (!stacked && samples.size() == 1) return write_npz(path, samples.front());
  std::vector<NamedTensor> out;
  for (size_t k = 0; k < samples.front().size(); ++k) {
    const NamedTensor& first = samples.front()[k];
    Tensor head = first.tensor;
    // What .npy cannot express is written as f32 or i32; widen before stacking, so that samples lie on bytes.
    const bool widen = dtype_bits(head.dtype()) < 8 && dtype_bits(head.dtype()) > 0;
    const DType dtype = widen ? (is_float(head.dtype()) ? DType::kF32 : DType::kI32) : head.dtype();
    Shape shape = head.shape();
    shape.insert(shape.begin(), static_cast<int64_t>(samples.size()));
    Tensor all(dtype, shape);
    char* to = static_cast<char*>(all.raw());
    for (const std::vector<NamedTensor>& sample : samples) {
      const Tensor& t = sample.at(k).tensor;
      if (sample[k].name != first.name || t.shape() != head.shape() || t.dtype() != head.dtype())
        throw Error(
            ErrorCode::kInvalidData,
            "output '" + first.name + "' is " + head.type_text() + " for the first sample and " +
                t.type_text() +
                " for another: samples of different shapes cannot be stacked; run them one file at a time",
            {.stage = "write"});
      const Tensor plain = widen ? ops::convert(t, dtype) : t;
      if (plain.nbytes() > 0) std::memcpy(to, plain.raw(), static_cast<size_t>(plain.nbytes()));
      to += plain.nbytes();
    }
    out.push_back({first.name, std::move(all)});
  }
  write_npz(path, out);
}

}  // namespace hone
