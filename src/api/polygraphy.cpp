#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/npy.h"
#include "api/samples.h"
#include "hone/error.h"

namespace hone::api {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void bad(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::kInvalidData, where + ": " + what, {.stage = "read"});
}

std::string decode_base64(const std::string& text, const std::string& where) {
  static const std::array<int8_t, 256> kValues = [] {
    std::array<int8_t, 256> t{};
    t.fill(-1);
    const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < alphabet.size(); ++i)
      t[static_cast<unsigned char>(alphabet[i])] = static_cast<int8_t>(i);
    return t;
  }();
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int held = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] != '='; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\n' || c == '\r') continue;
    if (kValues[c] < 0) bad(where, "the array is not base64");
    bits = bits << 6 | static_cast<uint32_t>(kValues[c]);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(bits >> held & 0xFF);
    }
  }
  for (; i < text.size(); ++i)
    if (text[i] != '=' && text[i] != '\n' && text[i] != '\r') bad(where, "the array is not base64");
  return out;
}

/// UTF-8 text of code points below 256 as their bytes.
std::string latin1(const std::string& utf8, const std::string& where) {
  std::string out;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto c = static_cast<unsigned char>(utf8[i]);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if ((c == 0xC2 || c == 0xC3) && i + 1 < utf8.size()) {
      out += static_cast<char>((c & 0x03) << 6 | (static_cast<unsigned char>(utf8[++i]) & 0x3F));
    } else {
      bad(where, "the array is neither base64 nor latin-1 text");
    }
  }
  return out;
}

/// The class an object stands for, in either spelling; empty for a plain object.
std::string class_of(const Json& object) {
  if (const auto it = object.find("polygraphy_class"); it != object.end() && it->is_string()) return *it;
  const std::string mark = "__polygraphy_encoded_";
  for (const auto& [key, value] : object.items())
    if (key.rfind(mark, 0) == 0) return key.substr(mark.size());
  return {};
}

Tensor read_array(const Json& value, const std::string& where) {
  const Json* at = &value;
  for (int depth = 0; at->is_object() && at->contains("values"); ++depth) {
    if (depth == 4) bad(where, "lazy wrappers are nested too deep");
    at = &(*at)["values"];
  }
  if (!at->is_object()) bad(where, "not an array object");
  const auto it = at->find("array");
  if (it == at->end() || !it->is_string()) {
    const std::string kind = class_of(*at);
    if (kind == "Tensor") bad(where, "a torch tensor; save NumPy arrays instead (tensor.numpy())");
    bad(where, "an object of class '" + kind + "' without an \"array\"");
  }
  const auto& text = it->get_ref<const std::string&>();
  return parse_npy(text.rfind("\xC2\x93NUMPY", 0) == 0 ? latin1(text, where) : decode_base64(text, where),
                   where);
}

}  // namespace

std::vector<std::vector<NamedTensor>> read_polygraphy_feeds(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::kInvalidArgument, "cannot open '" + path + "'", {.stage = "read"});
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Json document;
  try {
    document = Json::parse(bytes);
  } catch (const Json::exception& e) {
    bad(path, std::string("not JSON: ") + e.what());
  }
  if (document.is_object() && class_of(document) == "RunResults")
    bad(path, "holds outputs (RunResults), not inputs; save inputs with polygraphy run --save-inputs");
  if (!document.is_array()) bad(path, "not a list of feeds, one object of arrays for each run");
  std::vector<std::vector<NamedTensor>> feeds;
  for (const Json& feed : document) {
    const std::string where = path + ": feed " + std::to_string(feeds.size());
    if (!feed.is_object()) bad(where, "not an object of arrays");
    std::vector<NamedTensor> arrays;
    for (const auto& [name, value] : feed.items())
      arrays.push_back({name, read_array(value, where + ", '" + name + "'")});
    feeds.push_back(std::move(arrays));
  }
  return feeds;
}

}  // namespace hone::api
