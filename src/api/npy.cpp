// .npy and .npz. Format: NumPy's own description of .npy versions 1 to 3; .npz is a zip archive of them.
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "api/npy.h"
#include "hone/error.h"
#include "hone/io.h"
#include "ops/interpreter.h"

namespace hone {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxArrayBytes = int64_t{1} << 36;

[[noreturn]] void bad(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::kInvalidData, where + ": " + what, {.stage = "read"});
}

struct Header {
  DType dtype = DType::kUndefined;
  Shape shape;
  bool fortran = false;
  size_t data_offset = 0;
};

/// Value text of `'key':` in the header's Python dictionary literal.
std::string_view field(std::string_view dict, std::string_view key, const std::string& where) {
  for (char quote : {'\'', '"'}) {
    const std::string quoted = quote + std::string(key) + quote;
    size_t at = dict.find(quoted);
    if (at == std::string_view::npos) continue;
    at = dict.find(':', at + quoted.size());
    if (at == std::string_view::npos) break;
    ++at;
    while (at < dict.size() && dict[at] == ' ') ++at;
    return dict.substr(at);
  }
  bad(where, "the .npy header has no '" + std::string(key) + "'");
}

DType parse_descr(std::string_view text, const std::string& where) {
  if (text.empty() || (text[0] != '\'' && text[0] != '"'))
    bad(where, "structured arrays are not supported; save a plain array");
  const size_t end = text.find(text[0], 1);
  const std::string d(text.substr(1, end == std::string_view::npos ? 0 : end - 1));
  if (d.size() < 3) bad(where, "the dtype '" + d + "' is unknown");
  if (d[0] == '>') bad(where, "big-endian arrays are not supported; convert with .astype('<f4') or the like");
  const std::string t = d.substr(1);
  if (t == "f4") return DType::kF32;
  if (t == "f8") return DType::kF64;
  if (t == "f2") return DType::kF16;
  if (t == "i8") return DType::kI64;
  if (t == "i4") return DType::kI32;
  if (t == "i2") return DType::kI16;
  if (t == "i1") return DType::kI8;
  if (t == "u8") return DType::kU64;
  if (t == "u4") return DType::kU32;
  if (t == "u2") return DType::kU16;
  if (t == "u1") return DType::kU8;
  if (t == "b1") return DType::kBool;
  if (t == "c8") return DType::kC64;
  if (t == "c16") return DType::kC128;
  if (t[0] == 'O') bad(where, "object arrays hold Python pickles and are never read; save numbers");
  bad(where, "the dtype '" + d + "' is not supported");
}

Header parse_header(const std::string& bytes, const std::string& where) {
  if (bytes.size() < 10 || std::string_view(bytes).substr(0, kMagic.size()) != kMagic)
    bad(where, "not a .npy array");
  const auto major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3) bad(where, ".npy version " + std::to_string(major) + " is unknown");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) bad(where, "the .npy header is cut off");
  size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  const size_t start = 8 + length_bytes;
  if (length > bytes.size() - start || length > (1U << 20)) bad(where, "the .npy header is cut off");
  const std::string_view dict = std::string_view(bytes).substr(start, length);
  Header h;
  h.data_offset = start + length;
  h.dtype = parse_descr(field(dict, "descr", where), where);
  h.fortran = field(dict, "fortran_order", where).substr(0, 4) == "True";
  std::string_view shape = field(dict, "shape", where);
  if (shape.empty() || shape[0] != '(') bad(where, "the shape is malformed");
  shape.remove_prefix(1);
  int64_t value = -1;
  for (char c : shape) {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      value = std::max<int64_t>(value, 0);
      if (value > (int64_t{1} << 58)) bad(where, "the shape is too large");
      value = value * 10 + (c - '0');
    } else if (c == ',' || c == ')') {
      if (value >= 0) h.shape.push_back(value);
      value = -1;
      if (c == ')') break;
    } else if (c != ' ' && c != 'L') {
      bad(where, "the shape is malformed");
    }
    if (h.shape.size() > 32) bad(where, "more than 32 dimensions");
  }
  return h;
}

}  // namespace

Tensor api::parse_npy(const std::string& bytes, const std::string& where) {
  const Header h = parse_header(bytes, where);
  int64_t size = 0;
  try {
    size = dtype_bytes(h.dtype, numel(h.shape));
  } catch (const Error&) {
    bad(where, "the shape is too large");
  }
  if (size > kMaxArrayBytes || static_cast<size_t>(size) != bytes.size() - h.data_offset)
    bad(where, "the shape needs " + std::to_string(size) + " bytes, the file has " +
                   std::to_string(bytes.size() - h.data_offset));
  Tensor t(h.dtype, h.shape);
  const char* data = bytes.data() + h.data_offset;
  if (!h.fortran || h.shape.size() < 2) {
    if (size > 0) std::memcpy(t.raw(), data, static_cast<size_t>(size));
    return t;
  }
  // Column-major: element (i0, i1, ...) at i0 + i1*d0 + ...
  const int64_t width = dtype_bits(h.dtype) / 8;
  std::vector<int64_t> at(h.shape.size(), 0), stride(h.shape.size(), 1);
  for (size_t d = 1; d < stride.size(); ++d) stride[d] = stride[d - 1] * h.shape[d - 1];
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * stride[d];
    std::memcpy(static_cast<char*>(t.raw()) + i * width, data + offset * width, static_cast<size_t>(width));
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < h.shape[d]) break;
      at[d] = 0;
    }
  }
  return t;
}

namespace {

const char* descr(DType t) {
  switch (t) {
    case DType::kF32: return "<f4";
    case DType::kF64: return "<f8";
    case DType::kF16: return "<f2";
    case DType::kI64: return "<i8";
    case DType::kI32: return "<i4";
    case DType::kI16: return "<i2";
    case DType::kI8: return "|i1";
    case DType::kU64: return "<u8";
    case DType::kU32: return "<u4";
    case DType::kU16: return "<u2";
    case DType::kU8: return "|u1";
    case DType::kBool: return "|b1";
    case DType::kC64: return "<c8";
    case DType::kC128: return "<c16";
    default: return nullptr;
  }
}

std::string npy_bytes(const Tensor& given) {
  Tensor t = given;
  if (descr(t.dtype()) == nullptr) t = ops::convert(t, is_float(t.dtype()) ? DType::kF32 : DType::kI32);
  std::string dict = std::string("{'descr': '") + descr(t.dtype()) + "', 'fortran_order': False, 'shape': (";
  for (int64_t d : t.shape()) dict += std::to_string(d) + (t.rank() == 1 ? "," : ", ");
  dict += "), }";
  const size_t total = (10 + dict.size() + 1 + 63) / 64 * 64;
  dict.resize(total - 11, ' ');
  dict += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(dict.size() & 0xFF);
  out += static_cast<char>(dict.size() >> 8);
  out += dict;
  out.append(static_cast<const char*>(t.raw()), static_cast<size_t>(t.nbytes()));
  return out;
}

struct ZipCloser {
  void operator()(zip_t* z) const { zip_discard(z); }
};

}  // namespace

Tensor read_npy(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::kInvalidArgument, "cannot open '" + path + "'", {.stage = "read"});
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return api::parse_npy(bytes, path);
}

std::vector<NamedTensor> read_npz(const std::string& path) {
  int code = 0;
  const std::unique_ptr<zip_t, ZipCloser> zip(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!zip) {
    if (access(path.c_str(), R_OK) != 0)
      throw Error(ErrorCode::kInvalidArgument, "cannot open '" + path + "'", {.stage = "read"});
    bad(path, "not an .npz archive (zip error " + std::to_string(code) + ")");
  }
  std::vector<NamedTensor> out;
  const zip_int64_t n = zip_get_num_entries(zip.get(), 0);
  for (zip_int64_t i = 0; i < n; ++i) {
    zip_stat_t st;
    if (zip_stat_index(zip.get(), static_cast<zip_uint64_t>(i), 0, &st) != 0 || st.name == nullptr)
      bad(path, "entry " + std::to_string(i) + " is unreadable");
    std::string name = st.name;
    const std::string where = path + ": " + name;
    if (name.size() < 4 || name.substr(name.size() - 4) != ".npy")
      bad(where, "an .npz holds .npy entries only");
    // A deflated entry expands at most about 1032 times; more is an archive made to exhaust memory.
    if (st.size > static_cast<zip_uint64_t>(kMaxArrayBytes) || st.size / 1100 > st.comp_size + 1)
      bad(where, "the entry claims " + std::to_string(st.size) + " bytes");
    zip_file_t* f = zip_fopen_index(zip.get(), static_cast<zip_uint64_t>(i), 0);
    if (f == nullptr) bad(where, "the entry cannot be opened (encrypted or of an unknown compression)");
    std::string bytes(st.size, '\0');
    const zip_int64_t got = zip_fread(f, bytes.data(), st.size);
    const int closed = zip_fclose(f);
    if (got < 0 || static_cast<zip_uint64_t>(got) != st.size || closed != 0)
      bad(where, "the entry is damaged");
    out.push_back({name.substr(0, name.size() - 4), api::parse_npy(bytes, where)});
  }
  return out;
}

void write_npz(const std::string& path, const std::vector<NamedTensor>& arrays) {
  const std::string tmp = path + ".tmp" + std::to_string(getpid());
  int code = 0;
  zip_t* zip = zip_open(tmp.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (zip == nullptr)
    throw Error(ErrorCode::kInvalidArgument, "cannot write '" + path + "'", {.stage = "write"});
  std::vector<std::string> held;
  held.reserve(arrays.size());
  bool ok = true;
  for (const NamedTensor& a : arrays) {
    held.push_back(npy_bytes(a.tensor));
    zip_source_t* source = zip_source_buffer(zip, held.back().data(), held.back().size(), 0);
    const zip_int64_t index = source == nullptr ? -1
                                                : zip_file_add(zip, (a.name + ".npy").c_str(), source,
                                                               ZIP_FL_OVERWRITE | ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      if (source != nullptr) zip_source_free(source);
      ok = false;
      break;
    }
    zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
    zip_file_set_mtime(zip, static_cast<zip_uint64_t>(index), 315532800,
                       0);  // 1980-01-01: the same arrays give the same file
  }
  if (!ok || zip_close(zip) != 0) {
    zip_discard(zip);
    std::remove(tmp.c_str());
    throw Error(ErrorCode::kDevice, "cannot write '" + path + "'", {.stage = "write"});
  }
  if (arrays.empty())
    std::ofstream(tmp, std::ios::binary)
        << std::string("PK\x05\x06") + std::string(18, '\0');  // libzip writes no empty archive
  if (std::rename(tmp.c_str(), path.c_str()) != 0) {
    std::remove(tmp.c_str());
    throw Error(ErrorCode::kDevice, "cannot write '" + path + "'", {.stage = "write"});
  }
}

}  // namespace hone
