#include "commands.h"
#include "errors.h"
#include "json_reports.h"
#include "open.h"
#include "tables.h"
#include "text.h"

namespace hone::cli {
namespace {

std::string text_of(const InspectResult& r, bool verbose) {
  std::string text = printable(r.path) + (r.from_model ? " (a model, built in memory)" : "") + "\n";
  if (!r.info) {
    for (const auto& [key, value] : manifest_rows(r.manifest))
      text += "  " + key + ": " + printable(value) + "\n";
    return text + "Only the manifest can be shown: " + printable(r.why, true) + "\n";
  }
  const EngineInfo& e = *r.info;
  text += "  target:  " + e.target + ", tactics " + (e.timed ? "timed" : "chosen by rule, untimed") + "\n";
  text += "  inputs:  " + interface_text(e.inputs) + "\n  outputs: " + interface_text(e.outputs) + "\n";
  if (!e.body_hash.empty())
    text += "  engine:  " + e.body_hash + ", " + bytes_text(e.file_bytes) +
            (r.verified ? ", every byte checked" : "") + "\n";
  text += "  model:   " + e.model_hash + "\n  options: " + printable(e.options_json) + "\n";
  text += "\nLayers: " + steps_text(e.layers) + "\n" + layers_table(e.layers) + "\n" +
          precision_table(e.layers) + "\n" + ledger_table(e) + "\n" + memory_text(e.memory);
  if (!e.memory.peak.empty()) {
    text += "  live at the peak:\n";
    std::string line;
    int shown = 0;
    for (const char c : e.memory.peak + "\n") {
      if (c != '\n') {
        line += c;
        continue;
      }
      if (!line.empty() && (verbose || shown < 8)) text += "    " + printable(line) + "\n";
      shown += line.empty() ? 0 : 1;
      line.clear();
    }
    if (!verbose && shown > 8) text += "    ... and " + std::to_string(shown - 8) + " more (--verbose)\n";
  }
  text += "\n" + profiles_table(e);
  if (!e.records.empty()) {
    text += "\nRecords\n";
    for (const std::string& record : e.records)
      text += "  " + shortened(printable(record), static_cast<size_t>(terminal_width() - 2)) + "\n";
  }
  return text;
}

}  // namespace

int inspect_command(const Request& request) {
  need_path(request, "MODEL or ENGINE");
  InspectResult result;
  result.path = request.path;
  Engine engine;
  if (Engine::is_engine(request.path)) {
    result.manifest = Engine::manifest(request.path);
    try {
      engine = Engine::load(request.path, request.verify_file);
      result.verified = request.verify_file;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kUnsupported) throw;
      result.why = e.message();
    }
  } else {
    Opened opened = open_engine(request);
    engine = opened.engine;
    result.from_model = true;
    result.report = std::move(opened.report);
  }
  if (engine) {
    std::vector<Shape> shapes;
    if (!request.build.shapes.empty() || request.build.batch > 0)
      for (const auto& [name, shape] : shapes_for(request, engine)) shapes.push_back(shape);
    result.info = engine.info(shapes);
    result.tap_names = engine.tap_names();
  }
  if (!request.export_layer_info.empty()) {
    if (!result.info) throw Error(ErrorCode::kUnsupported, result.why);
    write_file(request.export_layer_info, trtexec_layers(*result.info));
  }
  if (!request.html.empty()) write_file(request.html, inspect_page(result));
  if (request.json)
    print(inspect_json(result) + "\n");
  else if (request.html.empty())
    print(text_of(result, request.verbose));
  else
    print(printable(request.html) + " is written\n");
  return 0;
}

}  // namespace hone::cli
