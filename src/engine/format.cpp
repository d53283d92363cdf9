#include "engine/format.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "engine/plan_generated.h"
#include "hone/error.h"
#include "hone/version.h"

namespace hone::engine {
namespace {

constexpr char kMagic[8] = {'H', 'O', 'N', 'E', 'E', 'N', 'G', '\x1a'};
constexpr uint64_t kWeightAlign = 4096;  // sections can be mapped page by page
constexpr uint64_t kBlobAlign = 64;      // each constant: one cache line
constexpr uint64_t kMaxSectionBytes = uint64_t{1} << 44;

/// Fixed-size header, little endian, at offset 0. Sections lie in this order without overlap; records follow
/// the body.
struct Header {
  char magic[8];
  uint32_t format_version;
  uint32_t header_bytes;
  uint64_t manifest_offset, manifest_bytes;
  uint64_t plan_offset, plan_bytes;
  uint64_t graph_offset, graph_bytes;
  uint64_t weights_offset, weights_bytes;
  uint64_t body_bytes;    // header + sections
  uint64_t meta_hash;     // XXH3-64 of manifest, plan, graph
  uint64_t body_hash[2];  // XXH3-128 (low, high) of everything after the header up to body_bytes
  uint64_t reserved;      // 0
  uint64_t header_hash;   // XXH3-64 of the bytes before this field
};
static_assert(sizeof(Header) == 128);

[[noreturn]] void corrupt(const std::string& what) {
  throw Error(ErrorCode::kCorruptEngine,
              what + "; the file is damaged or was not written by Hone: build it again", {.stage = "load"});
}

uint64_t align_up(uint64_t n, uint64_t a) { return (n + a - 1) / a * a; }

std::string hex128(uint64_t low, uint64_t high) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

// --- writing ---

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> strings(
    flatbuffers::FlatBufferBuilder& b, const std::vector<std::string>& v) {
  return b.CreateVectorOfStrings(v);
}

std::string plan_bytes(const Engine& e, const std::vector<uint64_t>& offsets) {
  flatbuffers::FlatBufferBuilder b(1 << 16);
  std::vector<flatbuffers::Offset<fb::Value>> values;
  for (const PlanValue& v : e.plan.values) {
    std::vector<std::string> dims;
    for (const ir::Dim& d : v.dims) dims.push_back(d.text());
    const auto name = b.CreateString(v.name);
    const auto dim_texts = strings(b, dims);
    values.push_back(fb::CreateValue(b, name, static_cast<uint8_t>(v.dtype), dim_texts,
                                     static_cast<uint8_t>(v.layout), static_cast<uint8_t>(v.place),
                                     v.alias_of, v.constant));
  }
  std::vector<flatbuffers::Offset<fb::Step>> steps;
  for (const PlanStep& s : e.plan.steps) {
    std::vector<flatbuffers::Offset<fb::Choice>> choices;
    for (const TacticChoice& c : s.choices)
      choices.push_back(fb::CreateChoiceDirect(b, c.tactic.c_str(), c.time_ns, c.error));
    const auto choice_vec = b.CreateVector(choices);
    const auto name = b.CreateString(s.name), problem = b.CreateString(s.problem.text());
    const auto srcs = b.CreateVector(s.srcs), dsts = b.CreateVector(s.dsts);
    const auto requested = b.CreateString(s.requested), actual = b.CreateString(s.actual),
               reason = b.CreateString(s.reason);
    const auto sources = strings(b, s.sources), passes = strings(b, s.passes);
    steps.push_back(fb::CreateStep(b, static_cast<uint8_t>(s.kind), name, problem, srcs, dsts, choice_vec,
                                   requested, actual, reason, sources, passes, s.host_node));
  }
  std::vector<flatbuffers::Offset<fb::Profile>> profiles;
  for (const Profile& p : e.plan.profiles) {
    std::vector<flatbuffers::Offset<fb::Range>> ranges;
    for (const ProfileRange& r : p)
      ranges.push_back(fb::CreateRangeDirect(b, r.input.c_str(), &r.min, &r.opt, &r.max));
    profiles.push_back(fb::CreateProfileDirect(b, &ranges));
  }
  std::vector<flatbuffers::Offset<fb::Constant>> constants;
  for (size_t i = 0; i < e.constants.size(); ++i) {
    const Constant& c = e.constants[i];
    constants.push_back(fb::CreateConstantDirect(b, c.name.c_str(), static_cast<uint8_t>(c.dtype), &c.dims,
                                                 c.packing.c_str(), static_cast<uint8_t>(c.bytes.dtype()),
                                                 &c.bytes.shape(), offsets[i]));
  }
  std::vector<flatbuffers::Offset<fb::Ledger>> ledger;
  for (const LedgerEntry& l : e.plan.ledger) {
    const auto pass = b.CreateString(l.pass), node = b.CreateString(l.node);
    const auto sources = strings(b, l.sources);
    const auto bytes = b.CreateString(l.bytes_not_moved.text());
    ledger.push_back(fb::CreateLedger(b, pass, node, sources, bytes));
  }
  b.Finish(fb::CreatePlanDirect(b, &values, &steps, &e.plan.inputs, &e.plan.outputs, &profiles, &constants,
                                &ledger, e.plan.unfused_traffic_bytes.text().c_str(), e.target.c_str(),
                                e.options_json.c_str(), e.model_hash.c_str(), e.timed));
  return std::string(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
}

void json_string(std::string& out, std::string_view s) {
  out += '"';
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char esc[8];
      std::snprintf(esc, sizeof esc, "\\u%04x", c);
      out += esc;
    } else {
      out += c;
    }
  }
  out += '"';
}

/// What `hone inspect` shows of a file without loading it.
std::string manifest(const Engine& e) {
  std::string m = "{\"format\":" + std::to_string(kEngineFormatVersion) + ",\"hone\":";
  json_string(m, kVersion);
  m += ",\"target\":";
  json_string(m, e.target);
  m += ",\"model_hash\":";
  json_string(m, e.model_hash);
  m += std::string(",\"tactics\":") + (e.timed ? "\"timed\"" : "\"untimed\"");
  m += ",\"steps\":" + std::to_string(e.plan.steps.size()) +
       ",\"constants\":" + std::to_string(e.constants.size());
  for (const auto& [key, ids] :
       {std::pair{"inputs", &e.plan.inputs}, std::pair{"outputs", &e.plan.outputs}}) {
    m += std::string(",\"") + key + "\":[";
    for (size_t i = 0; i < ids->size(); ++i) {
      const PlanValue& v = e.plan.values[static_cast<size_t>((*ids)[i])];
      m += i ? ",{\"name\":" : "{\"name\":";
      json_string(m, v.name);
      m += ",\"dtype\":";
      json_string(m, dtype_name(v.dtype));
      m += ",\"shape\":";
      json_string(m, ir::dims_text(v.dims));
      m += "}";
    }
    m += "]";
  }
  m += ",\"options\":" + (e.options_json.empty() ? "{}" : e.options_json) + "}";
  return m;
}

// --- reading ---

template <class T>
T checked_enum(uint8_t raw, uint8_t max, const char* what) {
  if (raw > max) corrupt(std::string(what) + " has the unknown value " + std::to_string(raw));
  return static_cast<T>(raw);
}

std::string str(const flatbuffers::String* s) { return s == nullptr ? std::string() : s->str(); }

std::vector<std::string> strs(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* v) {
  std::vector<std::string> out;
  if (v != nullptr)
    for (const auto* s : *v) out.push_back(s->str());
  return out;
}

template <class T>
std::vector<T> vec(const flatbuffers::Vector<T>* v) {
  return v == nullptr ? std::vector<T>() : std::vector<T>(v->begin(), v->end());
}

void read_plan(const fb::Plan& p, const uint8_t* weights, uint64_t weights_bytes,
               const std::shared_ptr<const void>& owner, Engine& e) {
  const uint8_t max_dtype = static_cast<uint8_t>(DType::kI2);
  if (p.values())
    for (const fb::Value* v : *p.values()) {
      PlanValue out;
      out.name = str(v->name());
      out.dtype = checked_enum<DType>(v->dtype(), max_dtype, "a value's dtype");
      for (const std::string& d : strs(v->dims())) out.dims.push_back(ir::Dim::parse(d));
      out.layout = checked_enum<ops::Layout>(v->layout(), 1, "a value's layout");
      out.place = checked_enum<Place>(v->place(), 4, "a value's place");
      out.alias_of = v->alias_of();
      out.constant = v->constant();
      e.plan.values.push_back(std::move(out));
    }
  if (p.steps())
    for (const fb::Step* s : *p.steps()) {
      PlanStep out;
      out.kind = checked_enum<StepKind>(s->kind(), 3, "a step's kind");
      out.name = str(s->name());
      out.problem = ops::Problem::parse(str(s->problem()));
      out.srcs = vec(s->srcs());
      out.dsts = vec(s->dsts());
      if (s->choices())
        for (const fb::Choice* c : *s->choices())
          out.choices.push_back({str(c->tactic()), c->time_ns(), c->error()});
      out.requested = str(s->requested());
      out.actual = str(s->actual());
      out.reason = str(s->reason());
      out.sources = strs(s->sources());
      out.passes = strs(s->passes());
      out.host_node = s->host_node();
      e.plan.steps.push_back(std::move(out));
    }
  e.plan.inputs = vec(p.inputs());
  e.plan.outputs = vec(p.outputs());
  if (p.profiles())
    for (const fb::Profile* pr : *p.profiles()) {
      Profile out;
      if (pr->ranges())
        for (const fb::Range* r : *pr->ranges())
          out.push_back({str(r->input()), vec(r->min()), vec(r->opt()), vec(r->max())});
      e.plan.profiles.push_back(std::move(out));
    }
  if (p.constants())
    for (const fb::Constant* c : *p.constants()) {
      Constant out;
      out.name = str(c->name());
      out.dtype = checked_enum<DType>(c->dtype(), max_dtype, "a constant's dtype");
      out.dims = vec(c->dims());
      out.packing = str(c->packing());
      const DType stored = checked_enum<DType>(c->stored_dtype(), max_dtype, "a constant's stored dtype");
      Shape dims = vec(c->stored_dims());
      const int64_t bytes = dtype_bytes(stored, numel(dims));
      if (c->offset() % kBlobAlign != 0 || c->offset() > weights_bytes ||
          static_cast<uint64_t>(bytes) > weights_bytes - c->offset())
        corrupt("constant '" + out.name + "' lies outside the weights section");
      out.bytes = Tensor::view(stored, std::move(dims), weights + c->offset(), owner);
      e.constants.push_back(std::move(out));
    }
  if (p.ledger())
    for (const fb::Ledger* l : *p.ledger())
      e.plan.ledger.push_back(
          {str(l->pass()), str(l->node()), strs(l->sources()), ir::Dim::parse(str(l->bytes_not_moved()))});
  e.plan.unfused_traffic_bytes = ir::Dim::parse(str(p.unfused_traffic_bytes()));
  e.target = str(p.target());
  e.options_json = str(p.options_json());
  e.model_hash = str(p.model_hash());
  e.timed = p.timed();
}

struct Mapping {
  void* data = MAP_FAILED;
  size_t bytes = 0;
  ~Mapping() {
    if (data != MAP_FAILED && bytes > 0) munmap(data, bytes);
  }
};

std::shared_ptr<Mapping> map_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw Error(ErrorCode::kInvalidArgument, "cannot open '" + path + "': " + std::strerror(errno),
                {.stage = "load"});
  struct stat st = {};
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    throw Error(ErrorCode::kInvalidArgument, "'" + path + "' is not a regular file", {.stage = "load"});
  }
  auto m = std::make_shared<Mapping>();
  m->bytes = static_cast<size_t>(st.st_size);
  if (m->bytes > 0) m->data = mmap(nullptr, m->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (m->bytes > 0 && m->data == MAP_FAILED)
    throw Error(ErrorCode::kDevice, "cannot map '" + path + "': " + std::strerror(errno), {.stage = "load"});
  return m;
}

Header checked_header(const uint8_t* p, size_t bytes) {
  Header h = {};
  if (bytes < sizeof h)
    corrupt("the file is shorter than its header (" + std::to_string(bytes) + " of 128 bytes)");
  std::memcpy(&h, p, sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) corrupt("no engine magic at the start");
  if (h.format_version != static_cast<uint32_t>(kEngineFormatVersion))
    throw Error(ErrorCode::kUnsupported,
                "engine format built for version " + std::to_string(h.format_version) + ", found version " +
                    std::to_string(kEngineFormatVersion) + ": rebuild the engine with this hone",
                {.stage = "load"});
  if (XXH3_64bits(&h, offsetof(Header, header_hash)) != h.header_hash)
    corrupt("the header's checksum does not match");
  if (h.header_bytes != sizeof h) corrupt("the header has the wrong length");
  if (h.body_bytes > bytes)
    corrupt("the file is truncated: " + std::to_string(bytes) + " of " + std::to_string(h.body_bytes) +
            " bytes");
  uint64_t end = sizeof h;
  for (const auto& [offset, size] :
       {std::pair{h.manifest_offset, h.manifest_bytes}, std::pair{h.plan_offset, h.plan_bytes},
        std::pair{h.graph_offset, h.graph_bytes}, std::pair{h.weights_offset, h.weights_bytes}}) {
    if (size > kMaxSectionBytes || offset < end || offset > h.body_bytes || size > h.body_bytes - offset)
      corrupt("a section lies outside the file");
    end = offset + size;
  }
  return h;
}

}  // namespace

std::string serialize(const Engine& e) {
  std::vector<uint64_t> offsets;
  uint64_t weights_bytes = 0;
  for (const Constant& c : e.constants) {
    offsets.push_back(weights_bytes);
    weights_bytes = align_up(weights_bytes + static_cast<uint64_t>(c.bytes.nbytes()), kBlobAlign);
  }
  const std::string m = manifest(e), p = plan_bytes(e, offsets);
  Header h = {};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.format_version = static_cast<uint32_t>(kEngineFormatVersion);
  h.header_bytes = sizeof h;
  h.manifest_offset = sizeof h;
  h.manifest_bytes = m.size();
  h.plan_offset = align_up(h.manifest_offset + m.size(), 64);
  h.plan_bytes = p.size();
  h.graph_offset = align_up(h.plan_offset + p.size(), 64);
  h.graph_bytes = e.graph_text.size();
  h.weights_offset = align_up(h.graph_offset + e.graph_text.size(), kWeightAlign);
  h.weights_bytes = weights_bytes;
  h.body_bytes = h.weights_offset + weights_bytes;

  std::string out(h.body_bytes, '\0');
  std::memcpy(out.data() + h.manifest_offset, m.data(), m.size());
  std::memcpy(out.data() + h.plan_offset, p.data(), p.size());
  std::memcpy(out.data() + h.graph_offset, e.graph_text.data(), e.graph_text.size());
  for (size_t i = 0; i < e.constants.size(); ++i)
    if (e.constants[i].bytes.nbytes() > 0)
      std::memcpy(out.data() + h.weights_offset + offsets[i], e.constants[i].bytes.raw(),
                  static_cast<size_t>(e.constants[i].bytes.nbytes()));
  h.meta_hash = XXH3_64bits(out.data() + sizeof h, h.weights_offset - sizeof h);
  const XXH128_hash_t body = XXH3_128bits(out.data() + sizeof h, out.size() - sizeof h);
  h.body_hash[0] = body.low64;
  h.body_hash[1] = body.high64;
  h.header_hash = XXH3_64bits(&h, offsetof(Header, header_hash));
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

void save(const Engine& engine, const std::string& path) {
  const std::string bytes = serialize(engine);
  const std::string tmp = path + ".tmp" + std::to_string(getpid());
  FILE* f = std::fopen(tmp.c_str(), "wb");
  if (f == nullptr)
    throw Error(ErrorCode::kInvalidArgument, "cannot write '" + path + "': " + std::strerror(errno),
                {.stage = "save"});
  const bool ok = std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size();
  const bool closed = std::fclose(f) == 0;
  if (!ok || !closed || std::rename(tmp.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(tmp.c_str());
    throw Error(ErrorCode::kDevice, "cannot write '" + path + "': " + why, {.stage = "save"});
  }
}

std::unique_ptr<Engine> load_bytes(const void* data, size_t bytes, std::shared_ptr<const void> owner,
                                   const LoadOptions& options, FileInfo* info) {
  const auto* p = static_cast<const uint8_t*>(data);
  const Header h = checked_header(p, bytes);
  if (XXH3_64bits(p + sizeof h, h.weights_offset - sizeof h) != h.meta_hash)
    corrupt("the plan's checksum does not match");
  if (options.verify_weights) {
    const XXH128_hash_t body = XXH3_128bits(p + sizeof h, h.body_bytes - sizeof h);
    if (body.low64 != h.body_hash[0] || body.high64 != h.body_hash[1])
      corrupt("the body's checksum does not match");
  }
  if (info != nullptr) {
    info->body_hash = hex128(h.body_hash[0], h.body_hash[1]);
    info->manifest_json.assign(reinterpret_cast<const char*>(p) + h.manifest_offset, h.manifest_bytes);
    info->file_bytes = static_cast<int64_t>(bytes);
    info->weights_bytes = static_cast<int64_t>(h.weights_bytes);
    info->plan_bytes = static_cast<int64_t>(h.plan_bytes);
    info->graph_bytes = static_cast<int64_t>(h.graph_bytes);
    info->format_version = static_cast<int>(h.format_version);
  }
  flatbuffers::Verifier verifier(p + h.plan_offset, h.plan_bytes, /*max_depth=*/16,
                                 /*max_tables=*/10'000'000);
  if (!fb::VerifyPlanBuffer(verifier)) corrupt("the plan is not a valid FlatBuffer");
  auto engine = std::make_unique<Engine>();
  try {
    read_plan(*fb::GetPlan(p + h.plan_offset), p + h.weights_offset, h.weights_bytes, owner, *engine);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCorruptEngine) throw;
    corrupt("the plan does not parse: " + error.message());
  }
  engine->graph_text.assign(reinterpret_cast<const char*>(p) + h.graph_offset, h.graph_bytes);
  if (const std::string wrong = check_plan(*engine); !wrong.empty())
    corrupt("the plan is inconsistent: " + wrong);
  return engine;
}

std::unique_ptr<Engine> load(const std::string& path, const LoadOptions& options, FileInfo* info) {
  const std::shared_ptr<Mapping> m = map_file(path);
  if (m->bytes == 0) corrupt("'" + path + "' is empty");
  return load_bytes(m->data, m->bytes, m, options, info);
}

FileInfo read_info(const std::string& path) {
  const std::shared_ptr<Mapping> m = map_file(path);
  if (m->bytes == 0) corrupt("'" + path + "' is empty");
  const auto* p = static_cast<const uint8_t*>(m->data);
  const Header h = checked_header(p, m->bytes);
  FileInfo info;
  info.body_hash = hex128(h.body_hash[0], h.body_hash[1]);
  info.manifest_json.assign(reinterpret_cast<const char*>(p) + h.manifest_offset, h.manifest_bytes);
  info.file_bytes = static_cast<int64_t>(m->bytes);
  info.weights_bytes = static_cast<int64_t>(h.weights_bytes);
  info.plan_bytes = static_cast<int64_t>(h.plan_bytes);
  info.graph_bytes = static_cast<int64_t>(h.graph_bytes);
  info.format_version = static_cast<int>(h.format_version);
  return info;
}

bool is_engine_file(const std::string& path) {
  FILE* f = std::fopen(path.c_str(), "rb");
  if (f == nullptr) return false;
  char magic[sizeof kMagic] = {};
  const bool got = std::fread(magic, 1, sizeof magic, f) == sizeof magic;
  std::fclose(f);
  return got && std::memcmp(magic, kMagic, sizeof kMagic) == 0;
}

// A record: u64 length, u64 XXH3-64 of the text, the text, padded to 8 bytes.

void append_record(const std::string& path, const std::string& json) {
  (void)read_info(path);
  FILE* f = std::fopen(path.c_str(), "ab");
  if (f == nullptr)
    throw Error(ErrorCode::kInvalidArgument, "cannot append to '" + path + "': " + std::strerror(errno),
                {.stage = "save"});
  const uint64_t head[2] = {json.size(), XXH3_64bits(json.data(), json.size())};
  std::string record(reinterpret_cast<const char*>(head), sizeof head);
  record += json;
  record.resize(align_up(record.size(), 8), '\0');
  const bool ok = std::fwrite(record.data(), 1, record.size(), f) == record.size();
  if (std::fclose(f) != 0 || !ok)
    throw Error(ErrorCode::kDevice, "cannot append to '" + path + "'", {.stage = "save"});
}

std::vector<std::string> read_records(const std::string& path) {
  const std::shared_ptr<Mapping> m = map_file(path);
  const auto* p = static_cast<const uint8_t*>(m->data);
  const Header h = checked_header(p, m->bytes);
  std::vector<std::string> records;
  uint64_t at = h.body_bytes;
  while (m->bytes - at >= 16) {
    uint64_t head[2];
    std::memcpy(head, p + at, sizeof head);
    at += sizeof head;
    if (head[0] > m->bytes - at) corrupt("a record runs past the end of the file");
    if (XXH3_64bits(p + at, head[0]) != head[1]) corrupt("a record's checksum does not match");
    records.emplace_back(reinterpret_cast<const char*>(p) + at, head[0]);
    at = std::min<uint64_t>(m->bytes, at + align_up(head[0], 8));
  }
  return records;
}

}  // namespace hone::engine
