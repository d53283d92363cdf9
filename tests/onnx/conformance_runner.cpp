// Runs conformance cases in one process: each through import and a backend, outputs compared with what the
// case says.
//
//   conformance_runner CASES [--names -] [--backend ref] [--expected LIST] [--write-expected LIST]
//   [--verbose]
//
// CASES is a folder that scripts/conformance.py wrote. With `--names -` the cases are named on standard
// input, one a line; else all run.
// --backend ref interprets the imported graph, oracle does so in f64 (outputs rounded to their type
// afterwards); cpu, cpu-avx2, ... are build targets: the whole path through optimizer, plan and session.
// Comparison: element type and shape equal; floats |got - want| <= atol + rtol * |want| with the case's
// tolerances, rtol at least two units of the type, atol at least 2^-22 of the largest |want| (where f32 sums
// cancel, the case's own numbers are that uncertain); NaN equals NaN; integers and booleans exact. Exit code
// 1 when a case of LIST ran and did not pass.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hone/builder.h"
#include "hone/error.h"
#include "hone/session.h"
#include "onnx/import.h"
#include "onnx/weights.h"
#include "ops/interpreter.h"

namespace {

using hone::Tensor;
namespace fs = std::filesystem;

struct Data {
  std::vector<Tensor> inputs, outputs;
  std::string op;
  double rtol = 1e-3, atol = 1e-7;
};

std::vector<char> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Data read_data(const fs::path& path) {
  const std::vector<char> bytes = read_file(path);
  const hone::onnx::ModelProto model = hone::onnx::read_model(bytes.data(), bytes.size());
  Data d;
  for (const hone::onnx::TensorProto& t : model.graph.initializer) {
    Tensor value = hone::onnx::load_tensor(t, {}).clone();
    (t.name.starts_with("in:") ? d.inputs : d.outputs).push_back(std::move(value));
  }
  for (const hone::onnx::KeyValue& kv : model.metadata) {
    if (kv.key == "op") d.op = kv.value;
    if (kv.key == "rtol") d.rtol = std::stod(std::string(kv.value));
    if (kv.key == "atol") d.atol = std::stod(std::string(kv.value));
  }
  return d;
}

/// Two units in the last place of 1.
double type_rtol(hone::DType t) {
  switch (t) {
    case hone::DType::kF16: return 0x1p-9;
    case hone::DType::kBF16: return 0x1p-6;
    default: return 0;
  }
}

/// Why `got` is not `want`; empty when it is.
std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return "got " + got.type_text() + ", want " + want.type_text();
  const bool exact = !hone::is_float(want.dtype());
  rtol = std::max(rtol, type_rtol(want.dtype()));
  double largest = 0;
  for (int64_t i = 0; !exact && i < want.numel(); ++i) {
    if (std::isfinite(want.at(i))) largest = std::max(largest, std::fabs(want.at(i)));
  }
  atol = std::max(atol, 0x1p-22 * largest);
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double g = got.at(i), w = want.at(i);
    if ((g != g && w != w) || g == w) continue;
    if (exact || !(std::fabs(g - w) <= atol + rtol * std::fabs(w))) {
      char text[128];
      std::snprintf(text, sizeof text, "element %lld is %.9g, want %.9g", static_cast<long long>(i), g, w);
      return text;
    }
  }
  return "";
}

struct Result {
  std::string op;
  std::string failure;  ///< empty: passed
};

/// Runs one model on one backend, inputs and outputs by position.
class Backend {
 public:
  Backend(const std::string& name, const fs::path& model) {
    oracle_ = name == "oracle";
    if (name == "ref" || oracle_) {
      model_ = hone::onnx::import_model(model.string());
      return;
    }
    hone::BuildOptions options;
    options.target = name;
    session_ = std::make_unique<hone::Session>(hone::build(model.string(), options));
  }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    if (session_ == nullptr) {
      hone::ops::InterpretOptions options;
      options.oracle = oracle_;
      std::vector<Tensor> outputs = hone::ops::interpret(*model_.graph, inputs, options);
      for (size_t i = 0; oracle_ && i < outputs.size(); ++i) {
        const hone::DType declared = model_.graph->value(model_.graph->outputs()[i]).type.dtype;
        if (hone::is_float(declared)) outputs[i] = hone::ops::convert(outputs[i], declared);
      }
      return outputs;
    }
    std::vector<Tensor> outputs;
    session_->run_into(inputs, outputs);
    return outputs;
  }

 private:
  hone::ir::Model model_;
  bool oracle_ = false;
  std::unique_ptr<hone::Session> session_;
};

Result run_case(const fs::path& folder, const std::string& backend_name) {
  Result result;
  try {
    result.op = read_data(folder / "data_0.onnx").op;
    Backend backend(backend_name, folder / "model.onnx");
    for (int set = 0; fs::exists(folder / ("data_" + std::to_string(set) + ".onnx")); ++set) {
      const Data data = read_data(folder / ("data_" + std::to_string(set) + ".onnx"));
      const std::vector<Tensor> got = backend.run(data.inputs);
      if (got.size() != data.outputs.size()) {
        result.failure =
            "got " + std::to_string(got.size()) + " outputs, want " + std::to_string(data.outputs.size());
        return result;
      }
      for (size_t i = 0; i < got.size(); ++i) {
        const std::string why = difference(got[i], data.outputs[i], data.rtol, data.atol);
        if (!why.empty()) {
          result.failure = "output " + std::to_string(i) + ": " + why;
          return result;
        }
      }
    }
  } catch (const std::exception& e) {
    result.failure = e.what();
  }
  return result;
}

std::set<std::string> read_names(std::istream& in) {
  std::set<std::string> names;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') names.insert(line);
  }
  return names;
}

int usage() {
  std::cerr << "usage: conformance_runner CASES [--names -] [--backend ref] [--expected LIST] "
               "[--write-expected LIST] [--verbose]\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string cases, backend = "ref", expected, write_expected;
  bool from_stdin = false, verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--verbose")
      verbose = true;
    else if (arg == "--names" && has_value)
      from_stdin = std::string(argv[++i]) == "-";
    else if (arg == "--backend" && has_value)
      backend = argv[++i];
    else if (arg == "--expected" && has_value)
      expected = argv[++i];
    else if (arg == "--write-expected" && has_value)
      write_expected = argv[++i];
    else if (cases.empty() && arg[0] != '-')
      cases = arg;
    else
      return usage();
  }
  if (cases.empty()) return usage();
  std::set<std::string> names;
  if (from_stdin) {
    names = read_names(std::cin);
  } else {
    for (const auto& entry : fs::directory_iterator(cases)) {
      if (entry.is_directory()) names.insert(entry.path().filename().string());
    }
  }

  std::map<std::string, std::pair<int, int>> by_op;  // passed, ran
  std::map<std::string, Result> failures;
  std::set<std::string> passed;
  for (const std::string& name : names) {
    if (verbose) std::cerr << name << "\n";
    const Result r = run_case(fs::path(cases) / name, backend);
    ++by_op[r.op].second;
    if (r.failure.empty()) {
      ++by_op[r.op].first;
      passed.insert(name);
    } else {
      failures.emplace(name, r);
    }
  }
  for (const auto& [name, r] : failures)
    std::cout << "FAIL " << name << " (" << r.op << "): " << r.failure << "\n";
  for (const auto& [op, count] : by_op) std::cout << op << ": " << count.first << "/" << count.second << "\n";
  std::cout << "passed " << passed.size() << " of " << names.size() << " cases\n";

  if (!write_expected.empty()) {
    std::ofstream out(write_expected);
    out << "# Conformance cases that pass on the " << backend
        << " backend, written by scripts/conformance.py --write-expected.\n";
    for (const std::string& name : passed) out << name << "\n";
  }
  int broken = 0;
  if (!expected.empty()) {
    std::ifstream in(expected);
    for (const std::string& name : read_names(in)) {
      if (names.contains(name) && !passed.contains(name)) {
        std::cout << "REGRESSION " << name << "\n";
        ++broken;
      }
    }
  }
  return broken == 0 ? 0 : 1;
}
