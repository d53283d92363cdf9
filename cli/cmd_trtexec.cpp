#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "commands.h"
#include "errors.h"
#include "hone/io.h"
#include "open.h"
#include "tables.h"
#include "text.h"
#include "trtexec.h"

namespace hone::cli {
namespace {

std::string rows(const char* title, const std::vector<std::pair<std::string, std::string>>& list) {
  std::string s = std::string(title) + "\n";
  size_t width = 0;
  for (const auto& [key, value] : list) width = std::max(width, std::min<size_t>(key.size(), 40));
  for (const auto& [key, value] : list)
    s += "  " + printable(key) + std::string(key.size() < width ? width - key.size() : 0, ' ') + "  " +
         printable(value) + "\n";
  return s + "\n";
}

/// trtexec's rule: sorted ascending, the value after leaving out trunc((1 - p/100) n) at the top.
double percentile(std::vector<double> times, double p) {
  std::sort(times.begin(), times.end());
  const auto n = static_cast<int64_t>(times.size());
  const auto exclude = static_cast<int64_t>((1 - p / 100) * static_cast<double>(n));
  return times[static_cast<size_t>(std::clamp<int64_t>(n - 1 - exclude, 0, n - 1))];
}

std::string summary(const BenchReport& b, const std::vector<double>& percentiles) {
  const auto ms = [](double v) { return number_text(v, 5) + " ms"; };
  std::vector<double> sorted = b.times_ms;
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  const double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  std::string s =
      "Performance summary\n  Throughput: " + number_text(b.mean_ms > 0 ? 1000 / b.mean_ms : 0, 6) +
      " qps\n  Latency: min = " + ms(b.min_ms) + ", max = " + ms(b.max_ms) + ", mean = " + ms(b.mean_ms) +
      ", median = " + ms(median);
  for (double p : percentiles) s += ", percentile(" + number_text(p, 4) + "%) = " + ms(percentile(sorted, p));
  return s +
         "\n  (host latency; this engine runs on the CPU, so there are no copies to or from a device)\n\n";
}

/// --loadInputs: bare little-endian bytes in ONNX order; type and shape come from the engine and --shapes.
/// Written as an .npz for run_bench.
void load_inputs(const TrtexecPlan& plan, const std::string& engine_path, const std::string& npz) {
  Request at = plan.bench;
  at.path = engine_path;
  const Engine engine = Engine::load(engine_path);
  std::vector<NamedTensor> arrays = random_inputs(engine.inputs(), shapes_for(at, engine), at.seed);
  for (const auto& [name, file] : plan.loads) {
    const auto it =
        std::find_if(arrays.begin(), arrays.end(), [&n = name](const NamedTensor& t) { return t.name == n; });
    if (it == arrays.end()) usage("--loadInputs: the engine has no input '" + name + "'");
    std::ifstream in(file, std::ios::binary);
    if (!in) usage("--loadInputs: cannot open '" + file + "'");
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (static_cast<int64_t>(bytes.size()) != it->tensor.nbytes())
      throw Error(ErrorCode::kInvalidData, "'" + file + "' has " + std::to_string(bytes.size()) +
                                               " bytes, input '" + name + "' " + it->tensor.type_text() +
                                               " takes " + std::to_string(it->tensor.nbytes()));
    if (!bytes.empty()) std::memcpy(it->tensor.raw(), bytes.data(), bytes.size());
  }
  write_npz(npz, arrays);
}

/// A file that is gone with the object.
struct TemporaryFile {
  std::string path;
  ~TemporaryFile() {
    if (!path.empty()) std::remove(path.c_str());
  }
};

std::string temporary(const char* suffix) {
  const char* folder = std::getenv("TMPDIR");
  std::string path =
      std::string(folder != nullptr && *folder != 0 ? folder : "/tmp") + "/hone_XXXXXX" + suffix;
  const int file = mkstemps(path.data(), static_cast<int>(std::strlen(suffix)));
  if (file < 0) throw Error(ErrorCode::kDevice, "cannot make a temporary file in '" + path + "'");
  close(file);
  return path;
}

}  // namespace

int trtexec_command(const std::vector<std::string>& args) {
  TrtexecPlan plan = parse_trtexec(args);
  if (plan.help) {
    print(trtexec_help());
    return 0;
  }
  if (plan.build.verbose) setenv("HONE_VERBOSE", "onnx,pass,dispatch,tune", 0);
  print(rows("In effect, trtexec's defaults included", plan.settings));
  if (!plan.ignored.empty()) print(rows("Without effect", plan.ignored));
  TemporaryFile engine_file, inputs_file;
  if (!plan.build.path.empty()) {
    if (plan.build.out.empty()) plan.build.out = engine_file.path = temporary(".engine");
    BuildResult built = run_build(plan.build);
    if (!engine_file.path.empty()) built.engine = "in memory";
    for (const Issue& i : built.report.issues)
      if (i.severity == "warning") warn(i.message);
    print_build(built, plan.build.verbose || plan.dump_layer_info, engine_file.path.empty());
    print("\n");
    plan.bench.path = plan.build.out;
  } else if (plan.dump_layer_info) {
    print("Layers\n" + layers_table(Engine::load(plan.bench.path).info().layers) + "\n");
  }
  if (!plan.runs) {
    if (!plan.bench.export_layer_info.empty()) {
      BenchResult only_layers;
      only_layers.info = Engine::load(plan.bench.path).info();
      Request request;
      request.export_layer_info = plan.bench.export_layer_info;
      export_bench(request, only_layers);
    }
    return 0;
  }
  if (!plan.loads.empty()) {
    inputs_file.path = temporary(".npz");
    load_inputs(plan, plan.bench.path, inputs_file.path);
    plan.bench.inputs = inputs_file.path;
  }
  BenchResult result = run_bench(plan.bench);
  if (!engine_file.path.empty()) result.path = plan.build.path;
  export_bench(plan.bench, result);
  for (const std::string& w : result.report.warnings) warn(w);
  print(summary(result.report, plan.bench.percentiles));
  print_bench(result, plan.bench.dump_profile);
  return 0;
}

}  // namespace hone::cli
