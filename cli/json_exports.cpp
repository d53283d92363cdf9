// trtexec's files, and manifests for people.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "flags.h"
#include "json_reports.h"

namespace hone::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j) { return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json tensors(const std::vector<LayerTensor>& list, bool constants) {
  Json j = Json::array();
  for (const LayerTensor& t : list)
    if (t.constant == constants)
      j.push_back({{"Name", t.name},
                   {"Location", "Host"},
                   {"Dimensions", t.shape},
                   {"Format/Datatype", t.layout + " " + dtype_name(t.dtype)}});
  return j;
}

}  // namespace

std::string trtexec_times(const BenchReport& report) {
  Json list = Json::array();
  double at = 0;  // runs follow each other: the origin is the first one's start
  for (double ms : report.times_ms) {
    const double end = at + ms;
    list.push_back({{"startEnqMs", at},
                    {"endEnqMs", at},
                    {"startH2dMs", at},
                    {"endH2dMs", at},
                    {"startComputeMs", at},
                    {"endComputeMs", end},
                    {"startD2hMs", end},
                    {"endD2hMs", end},
                    {"h2dMs", 0.0},
                    {"computeMs", ms},
                    {"d2hMs", 0.0},
                    {"latencyMs", ms}});
    at = end;
  }
  return dump(list);
}

std::string trtexec_profile(const BenchReport& report) {
  Json list = Json::array();
  list.push_back({{"count", report.layers.empty() ? 0 : report.layers.front().runs}});
  for (const LayerTime& l : report.layers)
    list.push_back({{"name", l.name},
                    {"timeMs", l.mean_ms * static_cast<double>(l.runs)},
                    {"averageMs", l.mean_ms},
                    {"medianMs", l.median_ms},
                    {"percentage", l.share * 100}});
  return dump(list);
}

std::string trtexec_layers(const EngineInfo& info) {
  Json layers = Json::array();
  for (const LayerInfo& l : info.layers) {
    std::string metadata;
    for (const std::string& node : l.sources)
      metadata += (metadata.empty() ? "" : "\x1f") + ("[ONNX Layer: " + node + "]");
    Json j = {{"Name", l.name},
              {"LayerType", l.op.empty() ? l.kind : l.op},
              {"Inputs", tensors(l.inputs, false)},
              {"Outputs", tensors(l.outputs, false)}};
    if (std::any_of(l.inputs.begin(), l.inputs.end(), [](const LayerTensor& t) { return t.constant; }))
      j["Constants"] = tensors(l.inputs, true);
    j["ParameterType"] = l.op;
    j["TacticName"] = l.tactic;
    j["Problem"] = l.problem;
    j["Precision"] = l.actual;
    j["Metadata"] = metadata;
    layers.push_back(std::move(j));
  }
  Json bindings = Json::array(), io = Json::array();
  const auto add = [&](const std::vector<TensorInfo>& list, const char* mode) {
    for (const TensorInfo& t : list) {
      bindings.push_back(t.name);
      Json profiles = Json::array();
      for (const auto& profile : info.profiles)
        for (const ProfileInfo& p : profile)
          if (p.input == t.name)
            profiles.push_back({{"MinShape", p.min}, {"OptShape", p.opt}, {"MaxShape", p.max}});
      io.push_back({{"Name", t.name},
                    {"IOMode", mode},
                    {"DataType", dtype_name(t.dtype)},
                    {"Dimensions", t.dims},
                    {"Location", "Host"},
                    {"ProfileInfo", profiles}});
    }
  };
  add(info.inputs, "Input");
  add(info.outputs, "Output");
  return dump(
      {{"Layers", std::move(layers)}, {"Bindings", std::move(bindings)}, {"I/O Tensors", std::move(io)}});
}

std::vector<std::pair<std::string, std::string>> manifest_rows(const std::string& manifest) {
  const Json j = Json::parse(manifest, nullptr, false);
  std::vector<std::pair<std::string, std::string>> rows;
  if (!j.is_object()) return {{"manifest", manifest}};
  for (const auto& [key, value] : j.items()) {
    if (value.is_array() && !value.empty() && value.front().is_object() && value.front().contains("shape")) {
      std::string text;
      for (const Json& t : value)
        text += (text.empty() ? "" : ", ") + t.value("name", "") + " " + t.value("dtype", "") +
                t.value("shape", "");
      rows.emplace_back(key, text);
    } else {
      rows.emplace_back(key, value.is_string() ? value.get<std::string>()
                                               : value.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  }
  return rows;
}

}  // namespace hone::cli
