#include "trtexec.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "errors.h"
#include "flags.h"
#include "text.h"

namespace hone::cli {
namespace {

enum class Fate { kUsed, kSame, kIgnored, kRefused };

struct Flag {
  const char* name;
  bool takes_value;
  Fate fate;
  const char* text;
};

constexpr Flag kFlags[] = {
#define HONE_TRTEXEC(name, takes_value, fate, text) {name, takes_value, Fate::fate, text},
#include "trtexec_flags.inc"
#undef HONE_TRTEXEC
};

const Flag* find_flag(const std::string& name) {
  for (const Flag& f : kFlags)
    if (name == f.name) return &f;
  return nullptr;
}

bool boolean(const std::string& value, const std::string& flag) {
  if (value.empty() || value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  usage(flag + ": '" + value + "' is neither true nor false");
}

double number(const std::string& value, const std::string& flag, double least) {
  char* end = nullptr;
  const double v = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || !(v >= least))
    usage(flag + ": '" + value + "' is not a number from " + number_text(least) + " up");
  return v;
}

/// Collects flags; later ones win, shape flags go to the profile of the last --profile.
class Reader {
 public:
  TrtexecPlan read(const std::vector<std::string>& args) {
    for (size_t i = 0; i < args.size(); ++i) {
      const std::string& arg = args[i];
      if (arg == "-h") {
        plan_.help = true;
        continue;
      }
      if (arg.rfind("--", 0) != 0)
        usage("'" + arg + "' is no flag; trtexec's flags look like --onnx=model.onnx");
      const size_t eq = arg.find('=');
      const std::string name = arg.substr(2, eq == std::string::npos ? std::string::npos : eq - 2);
      const Flag* flag = find_flag(name);
      if (flag == nullptr) {
        std::vector<std::string> known;
        for (const Flag& f : kFlags) known.push_back("--" + std::string(f.name));
        const std::string near = nearest(arg, known);
        usage("trtexec has no flag --" + name +
              (near.empty() ? "; see hone trtexec --help" : "; did you mean " + near + "?"));
      }
      std::string value = eq == std::string::npos ? "" : arg.substr(eq + 1);
      if (flag->takes_value && eq == std::string::npos) {
        if (i + 1 >= args.size() || args[i + 1].rfind("--", 0) == 0)
          usage("--" + name + " needs a value, as --" + name + "=...");
        value = args[++i];
      }
      const bool on = flag->takes_value || boolean(value, "--" + name);
      if (!on) continue;
      const std::string given = "--" + name + (flag->takes_value ? "=" + value : "");
      if (flag->fate == Fate::kRefused) throw Error(ErrorCode::kUnsupported, given + ": " + flag->text);
      if (flag->fate == Fate::kIgnored) plan_.ignored.emplace_back(given, flag->text);
      if (flag->fate == Fate::kSame)
        plan_.ignored.emplace_back(given, "nothing to do: " + std::string(flag->text));
      if (flag->fate == Fate::kUsed) use(name, value, given);
    }
    if (!plan_.help) finish();
    return std::move(plan_);
  }

 private:
  void use(const std::string& name, const std::string& value, const std::string& given) {
    Request& b = plan_.build;
    Request& r = plan_.bench;
    if (name == "help")
      plan_.help = true;
    else if (name == "onnx")
      b.path = value;
    else if (name == "saveEngine")
      b.out = value;
    else if (name == "loadEngine")
      r.path = value;
    else if (name == "skipInference" || name == "buildOnly")
      plan_.runs = false;
    else if (name == "verbose")
      b.verbose = r.verbose = true;
    else if (name == "profile")
      profile_ = static_cast<size_t>(std::min(number(value, "--profile", 0), 63.0));
    else if (name == "minShapes")
      profile().min = parse_shapes(value, "--minShapes");
    else if (name == "optShapes")
      profile().opt = parse_shapes(value, "--optShapes");
    else if (name == "maxShapes")
      profile().max = parse_shapes(value, "--maxShapes");
    else if (name == "shapes")
      r.build.shapes = parse_shapes(value, "--shapes");
    else if (name == "batch")
      b.build.batch = r.build.batch = static_cast<int64_t>(number(value, "--batch", 1));
    else if (name == "timingCacheFile")
      b.build.timing_cache_file = value;
    else if (name == "errorOnTimingCacheMiss")
      b.build.error_on_timing_cache_miss = true;
    else if (name == "memPoolSize")
      pools(value);
    else if (name == "workspace")
      b.build.max_workspace = parse_bytes(value, "--workspace");
    else if (name == "builderOptimizationLevel")
      level_ = number(value, "--builderOptimizationLevel", 0);
    else if (name == "iterations")
      r.iterations = static_cast<int64_t>(number(value, "--iterations", 0));
    else if (name == "duration")
      duration(value);
    else if (name == "warmUp")
      r.warm_up_ms = number(value, "--warmUp", 0);
    else if (name == "percentile")
      percentiles(value);
    else if (name == "dumpProfile")
      r.dump_profile = true;
    else if (name == "exportProfile")
      r.export_profile = value;
    else if (name == "exportTimes")
      r.export_times = value;
    else if (name == "exportLayerInfo")
      r.export_layer_info = value;
    else if (name == "dumpLayerInfo")
      plan_.dump_layer_info = true;
    else if (name == "loadInputs")
      load_inputs(value);
    else if (name == "precisionConstraints")
      constraints(value);
    else if (name == "layerPrecisions" || name == "layerOutputTypes")
      orders_.push_back(given);
    else
      permissions_.push_back(given);  // --fp16 and the like
  }

  ProfileSpec& profile() {
    auto& profiles = plan_.build.build.profiles;
    if (profiles.size() <= profile_) profiles.resize(profile_ + 1);
    return profiles[profile_];
  }

  void pools(const std::string& value) {
    std::vector<std::string> ignored;
    plan_.build.build.max_workspace = parse_pools(value, "--memPoolSize", &ignored);
    for (const std::string& pool : ignored)
      plan_.ignored.emplace_back("--memPoolSize=" + pool, "a CPU has no such memory");
  }

  void duration(const std::string& value) {
    if (value == "-1") usage("--duration=-1 never ends; give seconds");
    plan_.bench.duration_s = number(value, "--duration", 0);
  }

  void percentiles(const std::string& value) {
    plan_.bench.percentiles.clear();
    for (const std::string& part : parse_list(value)) {
      const double p = number(part, "--percentile", 0);
      if (p > 100) usage("--percentile: " + part + " is above 100");
      plan_.bench.percentiles.push_back(p);
    }
  }

  void load_inputs(const std::string& value) {
    for (const std::string& part : parse_list(value)) {
      const size_t colon = part.rfind(':');
      if (colon == std::string::npos || colon == 0) usage("--loadInputs: '" + part + "' is not name:file");
      std::string name = part.substr(0, colon);
      if (name.size() > 1 && name.front() == '\'' && name.back() == '\'')
        name = name.substr(1, name.size() - 2);
      plan_.loads.emplace_back(name, part.substr(colon + 1));
    }
  }

  void constraints(const std::string& value) {
    if (value != "none" && value != "prefer" && value != "obey")
      usage("--precisionConstraints: '" + value + "' is none of none, prefer, obey");
    constraints_ = value;
  }

  void finish() {
    Request& b = plan_.build;
    Request& r = plan_.bench;
    if (b.path.empty() && r.path.empty()) usage("neither --onnx nor --loadEngine is given");
    if (!b.path.empty() && !r.path.empty()) usage("both --onnx and --loadEngine are given; give one");
    if (!b.path.empty() && b.out.empty() && !plan_.runs)
      usage("--skipInference without --saveEngine leaves nothing; add --saveEngine=ENGINE");
    if (!orders_.empty() && constraints_ == "obey")
      throw Error(ErrorCode::kUnsupported,
                  orders_.front() +
                      " under --precisionConstraints=obey: this version of hone builds f32 engines only");
    for (const std::string& p : permissions_)
      plan_.ignored.emplace_back(
          p, "permits a type beside f32; this version of hone builds f32 only, so every layer runs in f32");
    for (const std::string& o : orders_)
      plan_.ignored.emplace_back(o,
                                 "a wish; this version of hone builds f32 only, so every layer runs in f32");
    const auto& profiles = b.build.profiles;
    for (size_t i = 0; i < profiles.size(); ++i)
      if (profiles[i].min.empty() && profiles[i].opt.empty() && profiles[i].max.empty())
        usage("optimization profile " + std::to_string(i) + " has no shapes");
    // Without profiles the shapes to run at are the shapes to be fast at, as in trtexec.
    if (profiles.empty()) b.build.shapes = r.build.shapes;
    b.tune = level_ > 0;
    b.precision = permissions_;
    b.permits_only = true;
    if (!r.iterations) r.iterations = 10;
    if (!r.duration_s) r.duration_s = 3;
    if (!r.warm_up_ms) r.warm_up_ms = 200;
    if (r.percentiles.empty()) r.percentiles = {90, 95, 99};
    std::string percentiles;
    for (double p : r.percentiles) percentiles += (percentiles.empty() ? "" : ",") + number_text(p, 4);
    const auto set = [&](const char* what, const std::string& value) {
      plan_.settings.emplace_back(what, value);
    };
    set("model", b.path.empty() ? "-" : b.path);
    set("engine", !r.path.empty() ? r.path : b.out.empty() ? "in memory" : b.out);
    set("precision", "FP32");
    set("builderOptimizationLevel",
        number_text(level_) + (level_ > 0 ? " (tactics are timed)" : " (tactics by rule)"));
    set("workspace", b.build.max_workspace > 0 ? bytes_text(b.build.max_workspace) : "no limit");
    set("timingCacheFile", b.build.timing_cache_file.empty() ? "-" : b.build.timing_cache_file);
    set("iterations", std::to_string(*r.iterations) + " at least");
    set("duration", number_text(*r.duration_s) + " s at least");
    set("warmUp", number_text(*r.warm_up_ms) + " ms");
    set("percentile", percentiles);
    set("streams", "1");
    set("inputs", plan_.loads.empty() ? "random" : std::to_string(plan_.loads.size()) + " from files");
  }

  TrtexecPlan plan_;
  size_t profile_ = 0;
  double level_ = 3;
  std::string constraints_ = "none";
  std::vector<std::string> permissions_, orders_;
};

}  // namespace

TrtexecPlan parse_trtexec(const std::vector<std::string>& args) { return Reader().read(args); }

std::vector<std::string> trtexec_flags() {
  std::vector<std::string> names;
  for (const Flag& f : kFlags) names.push_back("--" + std::string(f.name) + (f.takes_value ? "=" : ""));
  return names;
}

std::string trtexec_help() {
  std::string s =
      "hone trtexec ARGS: takes a trtexec command line (spellings of versions 10 and 11), builds and times "
      "with Hone,\n"
      "and says what had no effect.\n\n"
      "  hone trtexec --onnx=model.onnx --saveEngine=model.engine\n"
      "  hone trtexec --onnx=model.onnx --minShapes=x:1x3x224x224 --optShapes=x:8x3x224x224 "
      "--maxShapes=x:32x3x224x224\n"
      "  hone trtexec --loadEngine=model.engine --shapes=x:8x3x224x224 --dumpProfile\n\n";
  const std::pair<Fate, const char*> sections[] = {
      {Fate::kUsed, "Used"},
      {Fate::kSame, "Accepted: Hone does so anyway"},
      {Fate::kIgnored, "Accepted and ignored, which is said each time"},
      {Fate::kRefused, "Refused: the result would not be what was asked for (exit code 4)"}};
  for (const auto& [fate, title] : sections) {
    Table table({{title}, {"", Table::Align::kLeft, true}});
    for (const Flag& f : kFlags)
      if (f.fate == fate) table.row({"--" + std::string(f.name) + (f.takes_value ? "=" : ""), f.text});
    s += table.text() + "\n";
  }
  return s;
}

}  // namespace hone::cli
