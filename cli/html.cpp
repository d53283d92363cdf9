// The page of `inspect --html`: one file, no network, light and dark, phone to wide screen; tables sort by a
// click on their headers.
#include <fmt/core.h>
#include <algorithm>

#include "commands.h"
#include "flags.h"
#include "json_reports.h"
#include "tables.h"
#include "text.h"

namespace hone::cli {
namespace {

constexpr const char* kStyle = R"css(
:root{--bg:#fbfbf9;--card:#fff;--ink:#1d2024;--soft:#626a73;--line:#e2e4e6;--accent:#0b6bcb;--bar:#cfe3f8;--warn:#a04b00;--warnbg:#fff2e2;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--bg:#15181b;--card:#1d2125;--ink:#e8eaec;--soft:#9aa3ab;--line:#30363c;--accent:#6bb3ff;--bar:#1f3f60;--warn:#ffb266;--warnbg:#3a2a17}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1500px;margin:0 auto;padding:1rem clamp(.75rem,3vw,2.5rem) 4rem}
h1{font-size:1.5rem;margin:.5rem 0 0;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2.2rem 0 .6rem}
p{margin:.3rem 0}.soft{color:var(--soft)}
code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.87em;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.7rem;margin:1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.6rem .8rem}
.tile b{display:block;font-size:1.25rem;font-weight:600}.tile span{color:var(--soft);font-size:.85rem}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{text-align:left;padding:.35rem .7rem;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
td.wide{white-space:normal;min-width:14rem;overflow-wrap:anywhere}td.long{min-width:34rem}
tr:last-child td{border-bottom:0}
th{position:sticky;top:0;background:var(--card);font-weight:600}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid var(--accent)}
th[aria-sort=ascending] button::after{content:" \25b2";font-size:.7em}th[aria-sort=descending] button::after{content:" \25bc";font-size:.7em}
.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{background:linear-gradient(to right,var(--bar) var(--share),transparent var(--share))}
.flag{color:var(--warn);background:var(--warnbg);border-radius:4px;padding:0 .35em}
.note{background:var(--warnbg);color:var(--ink);border-left:4px solid var(--warn);padding:.6rem .9rem;border-radius:4px;margin:1rem 0}
input{font:inherit;padding:.35rem .6rem;border:1px solid var(--line);border-radius:6px;background:var(--card);color:var(--ink);width:min(24rem,100%);margin-bottom:.5rem}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--accent)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.5rem 0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
@media(max-width:520px){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}}
)css";

constexpr const char* kScript = R"js(
document.querySelectorAll('table.sort').forEach(t=>t.querySelectorAll('th').forEach((h,i)=>h.querySelector('button').onclick=()=>{
 const up=h.getAttribute('aria-sort')!=='ascending';t.querySelectorAll('th').forEach(x=>x.removeAttribute('aria-sort'));
 h.setAttribute('aria-sort',up?'ascending':'descending');
 const key=r=>{const c=r.cells[i],v=c.dataset.v;return v===undefined?c.textContent:+v},rows=[...t.tBodies[0].rows];
 rows.sort((a,b)=>{const x=key(a),y=key(b);return(typeof x==='number'?x-y:x.localeCompare(y,undefined,{numeric:true}))*(up?1:-1)});
 rows.forEach(r=>t.tBodies[0].append(r))}));
const q=document.getElementById('q');if(q)q.oninput=()=>{const w=q.value.toLowerCase();
 document.querySelectorAll('#layers tbody tr').forEach(r=>r.hidden=!r.textContent.toLowerCase().includes(w))};
)js";

std::string html(const std::string& text) {
  std::string out;
  for (const char c : printable(text, true)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string tile(const std::string& value, const std::string& what) {
  return "<div class=tile><b>" + html(value) + "</b><span>" + html(what) + "</span></div>";
}

std::string heads(std::initializer_list<std::pair<const char*, bool>> columns) {
  std::string s = "<thead><tr>";
  for (const auto& [title, numeric] : columns)
    s += fmt::format("<th{}><button>{}</button></th>", numeric ? " class=n" : "", title);
  return s + "</tr></thead><tbody>";
}

std::string cell(const std::string& text) { return "<td>" + html(text) + "</td>"; }
std::string wide(const std::string& text) { return "<td class=wide>" + html(text) + "</td>"; }
std::string figure(double value, const std::string& text, double share = 0) {
  if (share <= 0) return fmt::format("<td class=n data-v=\"{}\">{}</td>", value, html(text));
  return fmt::format("<td class=\"n bar\" style=\"--share:{:.1f}%\" data-v=\"{}\">{}</td>", share * 100,
                     value, html(text));
}

std::string join(const std::vector<std::string>& parts) {
  std::string s;
  for (const std::string& p : parts) s += (s.empty() ? "" : ", ") + p;
  return s;
}

/// The first few names; the rest in the tip.
std::string nodes_cell(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  if (names.size() <= kShown) return wide(join(names));
  const std::vector<std::string> first(names.begin(), names.begin() + kShown);
  return "<td class=wide title=\"" + html(join(names)) + "\">" +
         html(join(first) + " and " + std::to_string(names.size() - kShown) + " more") + "</td>";
}

std::string layers_section(const EngineInfo& e) {
  double moved = 1, tuned = 0;
  for (const LayerInfo& l : e.layers) {
    moved = std::max(moved, static_cast<double>(l.bytes_read + l.bytes_written + l.weight_bytes));
    tuned = std::max(tuned, l.tuned_time_ns);
  }
  std::string s = "<h2>Layers</h2><p class=soft>" + html(steps_text(e.layers)) +
                  "; figures at the opt shapes. A click on a header sorts.</p><input id=q type=search "
                  "placeholder=\"Filter layers\" aria-label=\"Filter layers\">"
                  "<div class=scroll><table class=sort id=layers>" +
                  heads({{"#", true},
                         {"layer", false},
                         {"op", false},
                         {"asked", false},
                         {"runs", false},
                         {"tactic", false},
                         {"tuned", true},
                         {"error", true},
                         {"moved", true},
                         {"weights", true},
                         {"workspace", true},
                         {"MFLOP", true},
                         {"nodes of the model", false},
                         {"problem", false}});
  int i = 0;
  for (const LayerInfo& l : e.layers) {
    const double bytes = static_cast<double>(l.bytes_read + l.bytes_written + l.weight_bytes);
    s += "<tr>" + figure(i, std::to_string(i)) + wide(l.name) + cell(l.op) + cell(l.requested);
    ++i;
    s += l.reason.empty() ? cell(l.actual)
                          : "<td>" + html(l.actual) + " <span class=flag title=\"" +
                                html(reason_text(l.reason)) + "\">" + html(l.reason) + "</span></td>";
    s += cell(l.tactic.empty() ? l.kind : l.tactic);
    s += figure(l.tuned_time_ns, l.tuned_time_ns > 0 ? ms_text(l.tuned_time_ns * 1e-6) : "",
                tuned > 0 ? l.tuned_time_ns / tuned : 0);
    s += figure(l.tuned_error, l.tuned_error < 0 ? "" : number_text(l.tuned_error, 2));
    s += figure(bytes, bytes_text(l.bytes_read + l.bytes_written), bytes / moved);
    s += figure(static_cast<double>(l.weight_bytes), l.weight_bytes > 0 ? bytes_text(l.weight_bytes) : "");
    s += figure(static_cast<double>(l.workspace_bytes),
                l.workspace_bytes > 0 ? bytes_text(l.workspace_bytes) : "");
    s += figure(l.flops, l.flops > 0 ? number_text(l.flops * 1e-6) : "") + nodes_cell(l.sources) +
         "<td class=\"wide long mono\">" + html(l.problem) + "</td></tr>";
  }
  return s + "</tbody></table></div>";
}

std::string fallback_section(const EngineInfo& e) {
  std::string rows;
  for (const LayerInfo& l : e.layers)
    if (is_fallback(l))
      rows += "<tr>" + wide(l.name) + cell(l.op) + cell(l.requested) + cell(l.actual) +
              wide(reason_text(l.reason)) + "</tr>";
  if (rows.empty()) return "<h2>Fallbacks</h2><p>None: every layer runs on a kernel of this target.</p>";
  return "<h2>Fallbacks</h2><div class=scroll><table class=sort>" +
         heads({{"layer", false}, {"op", false}, {"asked", false}, {"runs", false}, {"reason", false}}) +
         rows + "</tbody></table></div>";
}

std::string ledger_section(const EngineInfo& e) {
  std::string s = "<h2>Ledger</h2>";
  if (e.ledger.empty()) return s + "<p>No rewrite was made.</p>";
  s += "<p class=soft>Bytes of activations that one inference no longer moves: " +
       html(bytes_text(e.ledger_bytes));
  if (e.unfused_bytes > 0)
    s += ", " + percent_text(static_cast<double>(e.ledger_bytes) / static_cast<double>(e.unfused_bytes)) +
         " of the unfused graph's " + html(bytes_text(e.unfused_bytes));
  s += ".</p><div class=scroll><table class=sort>" +
       heads({{"rewrite", false}, {"times", true}, {"nodes", true}, {"bytes not moved", true}});
  const std::vector<LedgerSum> sums = ledger_sums(e);
  const double largest =
      sums.empty() || sums.front().bytes <= 0 ? 1 : static_cast<double>(sums.front().bytes);
  for (const LedgerSum& l : sums)
    s += "<tr>" + cell(l.pass) + figure(static_cast<double>(l.count), std::to_string(l.count)) +
         figure(static_cast<double>(l.nodes), std::to_string(l.nodes)) +
         figure(static_cast<double>(l.bytes), bytes_text(l.bytes), static_cast<double>(l.bytes) / largest) +
         "</tr>";
  s += "</tbody></table></div><details><summary>Every rewrite</summary><div class=scroll><table class=sort>" +
       heads({{"rewrite", false},
              {"result", false},
              {"nodes", false},
              {"bytes not moved", true},
              {"formula", false}});
  for (const LedgerInfo& l : e.ledger)
    s += "<tr>" + cell(l.pass) + wide(l.node) + wide(join(l.sources)) +
         figure(static_cast<double>(l.bytes_not_moved), bytes_text(l.bytes_not_moved)) +
         "<td class=\"wide mono\">" + html(l.formula) + "</td></tr>";
  return s + "</tbody></table></div></details>";
}

std::string memory_section(const EngineInfo& e) {
  std::string s = "<h2>Memory</h2><div class=tiles>" +
                  tile(bytes_text(e.memory.arena_bytes), "arena, workspaces included") +
                  tile(bytes_text(e.memory.peak_live_bytes), "live at the peak: no plan can do with less") +
                  tile(bytes_text(e.memory.weights_bytes), "weights") + "</div>";
  if (!e.memory.peak.empty())
    s += "<details><summary>Tensors live at the peak</summary><pre class=\"scroll mono\" "
         "style=\"padding:.7rem\">" +
         html(e.memory.peak) + "</pre></details>";
  return s;
}

std::string profile_section(const EngineInfo& e) {
  std::string s =
      "<h2>Optimization profiles</h2><div class=scroll><table class=sort>" +
      heads({{"profile", true}, {"input", false}, {"min", false}, {"opt", false}, {"max", false}});
  for (size_t i = 0; i < e.profiles.size(); ++i)
    for (const ProfileInfo& p : e.profiles[i])
      s += "<tr>" + figure(static_cast<double>(i), std::to_string(i)) + cell(p.input) +
           cell(range_text(p.min)) + cell(range_text(p.opt)) + cell(range_text(p.max)) + "</tr>";
  return s + "</tbody></table></div>";
}

}  // namespace

std::string inspect_page(const InspectResult& r) {
  const std::string name = r.path.substr(r.path.rfind('/') + 1);
  std::string s =
      "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width,initial-scale=1\"><title>" +
      html(name) + " - hone inspect</title><style>" + kStyle + "</style></head><body><main><h1>" +
      html(name) + "</h1>";
  if (!r.info) {
    s += "<div class=note>Only the manifest can be shown: " + html(r.why) + "</div><dl>";
    for (const auto& [key, value] : manifest_rows(r.manifest))
      s += "<dt>" + html(key) + "</dt><dd class=mono>" + html(value) + "</dd>";
    return s + "</dl></main></body></html>\n";
  }
  const EngineInfo& e = *r.info;
  int64_t fallbacks = 0;
  double tuned = 0;
  for (const LayerInfo& l : e.layers) {
    fallbacks += is_fallback(l);
    tuned += l.tuned_time_ns;
  }
  s += "<p class=soft>" + html(e.target) + ", tactics " + (e.timed ? "timed" : "chosen by rule, untimed") +
       (r.from_model ? ", a model built in memory" : "") + "</p><div class=tiles>";
  s += tile(std::to_string(e.layers.size()), "steps") + tile(std::to_string(fallbacks), "fallbacks") +
       tile(bytes_text(e.ledger_bytes), "not moved, by fusions") +
       tile(bytes_text(e.memory.arena_bytes), "arena") + tile(bytes_text(e.memory.weights_bytes), "weights");
  if (e.file_bytes > 0) s += tile(bytes_text(e.file_bytes), "engine file");
  if (tuned > 0) s += tile(ms_text(tuned * 1e-6), "sum of tuned layers");
  s += "</div><dl><dt>inputs</dt><dd class=mono>" + html(interface_text(e.inputs)) +
       "</dd><dt>outputs</dt><dd class=mono>" + html(interface_text(e.outputs)) + "</dd>";
  if (!e.body_hash.empty())
    s += "<dt>engine</dt><dd class=mono>" + html(e.body_hash) + (r.verified ? " (every byte checked)" : "") +
         "</dd>";
  s += "<dt>model</dt><dd class=mono>" + html(e.model_hash) + "</dd><dt>options</dt><dd class=mono>" +
       html(e.options_json) + "</dd></dl>";
  s += fallback_section(e) + layers_section(e) + ledger_section(e) + memory_section(e) + profile_section(e);
  if (!e.records.empty()) {
    s += "<h2>Records</h2>";
    for (const std::string& record : e.records)
      s += "<details><summary>record</summary><p class=mono>" + html(record) + "</p></details>";
  }
  return s + "</main><script>" + kScript + "</script></body></html>\n";
}

}  // namespace hone::cli
