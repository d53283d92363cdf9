#include "ir/graph.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <queue>
#include <utility>

#include "hone/error.h"
#include "ir/text.h"

namespace hone::ir {

std::string TypeInfo::text() const {
  std::string s = dtype_name(dtype);
  return s + (shape ? dims_text(*shape) : std::string("[?]"));
}

// --- attributes ---

namespace {

[[noreturn]] void wrong_type(std::string_view name, const char* wanted) {
  throw Error(ErrorCode::kInvalidModel, "attribute " + std::string(name) + " is not " + wanted);
}

template <class T>
const T* find_attr(const AttrMap& attrs, std::string_view name, const char* wanted) {
  const auto it = attrs.find(name);
  if (it == attrs.end()) return nullptr;
  const T* v = std::get_if<T>(&it->second);
  if (v == nullptr) wrong_type(name, wanted);
  return v;
}

// The node's accessors add who they speak of.
template <class F>
auto with_context(const Node& node, F f) {
  try {
    return f();
  } catch (const Error& e) {
    ErrorContext c;
    c.node = node.name;
    c.op = node.op_text();
    throw Error(e.code(), e.message(), std::move(c), e.where());
  }
}

}  // namespace

int64_t attr_int(const AttrMap& attrs, std::string_view name, int64_t fallback) {
  const auto* v = find_attr<int64_t>(attrs, name, "an integer");
  return v != nullptr ? *v : fallback;
}
float attr_float(const AttrMap& attrs, std::string_view name, float fallback) {
  const auto* v = find_attr<float>(attrs, name, "a float");
  return v != nullptr ? *v : fallback;
}
std::string attr_string(const AttrMap& attrs, std::string_view name, std::string_view fallback) {
  const auto* v = find_attr<std::string>(attrs, name, "a string");
  return v != nullptr ? *v : std::string(fallback);
}
std::vector<int64_t> attr_ints(const AttrMap& attrs, std::string_view name, std::vector<int64_t> fallback) {
  const auto* v = find_attr<std::vector<int64_t>>(attrs, name, "a list of integers");
  if (v == nullptr) return fallback;
  return *v;
}
std::vector<float> attr_floats(const AttrMap& attrs, std::string_view name, std::vector<float> fallback) {
  const auto* v = find_attr<std::vector<float>>(attrs, name, "a list of floats");
  if (v == nullptr) return fallback;
  return *v;
}
const Tensor* attr_tensor(const AttrMap& attrs, std::string_view name) {
  return find_attr<Tensor>(attrs, name, "a tensor");
}

int64_t Node::get_int(std::string_view attr, int64_t fallback) const {
  return with_context(*this, [&] { return attr_int(attrs, attr, fallback); });
}
float Node::get_float(std::string_view attr, float fallback) const {
  return with_context(*this, [&] { return attr_float(attrs, attr, fallback); });
}
std::string Node::get_string(std::string_view attr, std::string_view fallback) const {
  return with_context(*this, [&] { return attr_string(attrs, attr, fallback); });
}
std::vector<int64_t> Node::get_ints(std::string_view attr, std::vector<int64_t> fallback) const {
  return with_context(*this, [&] { return attr_ints(attrs, attr, std::move(fallback)); });
}
std::vector<float> Node::get_floats(std::string_view attr, std::vector<float> fallback) const {
  return with_context(*this, [&] { return attr_floats(attrs, attr, std::move(fallback)); });
}
const Tensor* Node::get_tensor(std::string_view attr) const {
  return with_context(*this, [&] { return attr_tensor(attrs, attr); });
}
std::shared_ptr<Graph> Node::get_graph(std::string_view attr) const {
  return with_context(*this, [&]() -> std::shared_ptr<Graph> {
    const auto* v = find_attr<std::shared_ptr<Graph>>(attrs, attr, "a graph");
    return v != nullptr ? *v : nullptr;
  });
}

namespace {

bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

bool same_tensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return a.raw() == b.raw() || a.nbytes() == 0 ||
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.nbytes())) == 0;
}

bool same_graph(const std::shared_ptr<Graph>& a, const std::shared_ptr<Graph>& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  PrintOptions full;
  full.inline_bytes = INT64_MAX;
  return print(*a, full) == print(*b, full);
}

bool same_attr(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<float>(&a)) return same_bits(*x, std::get<float>(b));
  if (const auto* x = std::get_if<std::vector<float>>(&a)) {
    const auto& y = std::get<std::vector<float>>(b);
    return std::equal(x->begin(), x->end(), y.begin(), y.end(), same_bits);
  }
  if (const auto* x = std::get_if<Tensor>(&a)) return same_tensor(*x, std::get<Tensor>(b));
  if (const auto* x = std::get_if<std::shared_ptr<Graph>>(&a))
    return same_graph(*x, std::get<std::shared_ptr<Graph>>(b));
  if (const auto* x = std::get_if<std::vector<std::shared_ptr<Graph>>>(&a)) {
    const auto& y = std::get<std::vector<std::shared_ptr<Graph>>>(b);
    return std::equal(x->begin(), x->end(), y.begin(), y.end(), same_graph);
  }
  if (const auto* x = std::get_if<int64_t>(&a)) return *x == std::get<int64_t>(b);
  if (const auto* x = std::get_if<std::string>(&a)) return *x == std::get<std::string>(b);
  if (const auto* x = std::get_if<std::vector<int64_t>>(&a)) return *x == std::get<std::vector<int64_t>>(b);
  return std::get<std::vector<std::string>>(a) == std::get<std::vector<std::string>>(b);
}

[[noreturn]] void internal(const std::string& message,
                           std::source_location where = std::source_location::current()) {
  throw Error(ErrorCode::kInternal, message, {}, where);
}

}  // namespace

bool attrs_equal(const AttrMap& a, const AttrMap& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_attr(x.second, y.second);
  });
}

// --- values ---

std::string Graph::unique_name(std::string_view wanted) {
  if (!wanted.empty() && by_name_.find(wanted) == by_name_.end()) return std::string(wanted);
  const std::string base(wanted.empty() ? "v" : wanted);
  int64_t& next = next_suffix_.try_emplace(base, wanted.empty() ? 0 : 1).first->second;
  for (;;) {
    std::string candidate = base + (wanted.empty() ? "" : "_") + std::to_string(next++);
    if (by_name_.find(candidate) == by_name_.end()) return candidate;
  }
}

void Graph::note_symbols(const TypeInfo& type) {
  if (!type.shape) return;
  std::vector<std::string> names;
  for (const Dim& d : *type.shape) d.symbols(&names);
  for (const std::string& n : names) {
    size_t stem = n.size();
    while (stem > 0 && n[stem - 1] >= '0' && n[stem - 1] <= '9') --stem;
    if (stem == n.size() || n.size() - stem > 15) continue;
    int64_t number = 0;
    std::from_chars(n.data() + stem, n.data() + n.size(), number);
    int64_t& next = (*next_symbol_)[n.substr(0, stem)];
    next = std::max(next, number + 1);
  }
}

Dim Graph::fresh_symbol(std::string_view prefix) {
  const std::string p(prefix);
  return Dim::symbol(p + std::to_string((*next_symbol_)[p]++));
}

ValueId Graph::add_value(std::string_view wanted, TypeInfo type) {
  note_symbols(type);
  auto v = std::make_unique<Value>();
  v->id = static_cast<ValueId>(values_.size());
  v->name = unique_name(wanted);
  v->type = std::move(type);
  by_name_.emplace(v->name, v->id);
  values_.push_back(std::move(v));
  return values_.back()->id;
}

ValueId Graph::add_constant(std::string_view wanted, Tensor data) {
  const ValueId id = add_value(wanted, TypeInfo{data.dtype(), to_dims(data.shape())});
  value(id).data = std::make_shared<const Tensor>(std::move(data));
  return id;
}

ValueId Graph::find(std::string_view wanted) const {
  const auto it = by_name_.find(wanted);
  return it == by_name_.end() ? kNoValue : it->second;
}

void Graph::rename_value(ValueId id, std::string_view wanted) {
  Value& v = value(id);
  if (v.name == wanted) return;
  by_name_.erase(v.name);
  v.name = unique_name(wanted);
  by_name_.emplace(v.name, id);
}

void Graph::set_constant(ValueId id, Tensor data) {
  Value& v = value(id);
  if (v.producer != nullptr) {
    v.producer->outputs[static_cast<size_t>(v.output_index)] = kNoValue;
    v.producer = nullptr;
    v.output_index = 0;
  }
  v.type = TypeInfo{data.dtype(), to_dims(data.shape())};
  v.contents.reset();
  v.data = std::make_shared<const Tensor>(std::move(data));
}

// --- interface ---

ValueId Graph::add_input(std::string_view wanted, TypeInfo type) {
  const ValueId id = add_value(wanted, std::move(type));
  inputs_.push_back(id);
  return id;
}

void Graph::add_output(ValueId id) {
  ++value(id).listed_as_output;
  outputs_.push_back(id);
}

void Graph::set_output(size_t index, ValueId id) {
  --value(outputs_[index]).listed_as_output;
  ++value(id).listed_as_output;
  outputs_[index] = id;
}

void Graph::remove_output(size_t index) {
  --value(outputs_[index]).listed_as_output;
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(index));
}

// --- nodes ---

void Graph::add_use(Node* node, size_t index) {
  const ValueId id = node->inputs[index];
  if (id == kNoValue) return;
  if (id < 0 || static_cast<size_t>(id) >= values_.size())
    internal("node '" + node->name + "' uses an unknown value");
  std::vector<Use>& uses = value(id).uses;
  node->use_at_[index] = static_cast<int32_t>(uses.size());
  uses.push_back(Use{node, static_cast<int>(index)});
}

// Constant time: the last use takes the place of the one that goes.
void Graph::drop_use(Node* node, size_t index) {
  const ValueId id = node->inputs[index];
  if (id == kNoValue) return;
  std::vector<Use>& uses = value(id).uses;
  const auto at = static_cast<size_t>(node->use_at_[index]);
  const Use moved = uses.back();
  uses[at] = moved;
  moved.node->use_at_[static_cast<size_t>(moved.index)] = static_cast<int32_t>(at);
  uses.pop_back();
}

void Graph::link(Node* node) {
  node->use_at_.assign(node->inputs.size(), -1);
  for (size_t i = 0; i < node->inputs.size(); ++i) add_use(node, i);
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    const ValueId id = node->outputs[i];
    if (id == kNoValue) continue;
    if (id < 0 || static_cast<size_t>(id) >= values_.size())
      internal("node '" + node->name + "' makes an unknown value");
    Value& v = value(id);
    if (v.producer != nullptr || v.is_const()) {
      internal("value '" + v.name + "' has a producer already and node '" + node->name +
               "' would be another");
    }
    v.producer = node;
    v.output_index = static_cast<int>(i);
  }
}

void Graph::unlink(Node* node) {
  for (size_t i = 0; i < node->inputs.size(); ++i) drop_use(node, i);
  for (const ValueId id : node->outputs) {
    if (id != kNoValue) value(id).producer = nullptr;
  }
}

Node* Graph::add_node(Node node, Node* before) {
  auto owned = std::make_unique<Node>(std::move(node));
  Node* n = owned.get();
  n->self_ = nodes_.insert(before != nullptr ? before->self_ : nodes_.end(), std::move(owned));
  link(n);
  return n;
}

Node* Graph::add_node(std::string_view op, std::vector<ValueId> node_inputs, AttrMap attrs,
                      std::string_view domain, Node* before, std::string_view node_name, int num_outputs) {
  Node n;
  n.name = node_name;
  n.op = op;
  n.domain = domain;
  n.inputs = std::move(node_inputs);
  n.attrs = std::move(attrs);
  const std::string base(node_name.empty() ? op : node_name);
  for (int i = 0; i < num_outputs; ++i) n.outputs.push_back(add_value(base + "_out", {}));
  return add_node(std::move(n), before);
}

Node* Graph::next(Node* node) {
  auto it = std::next(node->self_);
  return it == nodes_.end() ? nullptr : it->get();
}

void Graph::move_before(Node* node, Node* before) {
  if (node != before) nodes_.splice(before != nullptr ? before->self_ : nodes_.end(), nodes_, node->self_);
}

void Graph::remove_node(Node* node) {
  unlink(node);
  nodes_.erase(node->self_);
}

void Graph::set_input(Node* node, size_t index, ValueId id) {
  if (index >= node->inputs.size())
    internal("node '" + node->name + "' has no input " + std::to_string(index));
  drop_use(node, index);
  node->inputs[index] = id;
  add_use(node, index);
}

void Graph::append_input(Node* node, ValueId id) {
  node->inputs.push_back(id);
  node->use_at_.push_back(-1);
  add_use(node, node->inputs.size() - 1);
}

void Graph::pop_input(Node* node) {
  drop_use(node, node->inputs.size() - 1);
  node->inputs.pop_back();
  node->use_at_.pop_back();
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  Value& f = value(from);
  Value& t = value(to);
  t.uses.reserve(t.uses.size() + f.uses.size());
  for (const Use& u : f.uses) {
    u.node->inputs[static_cast<size_t>(u.index)] = to;
    u.node->use_at_[static_cast<size_t>(u.index)] = static_cast<int32_t>(t.uses.size());
    t.uses.push_back(u);
  }
  f.uses.clear();
  if (f.listed_as_output == 0 || t.producer == nullptr || t.listed_as_output != 0) return;
  const std::string output_name = f.name;
  rename_value(from, {});
  rename_value(to, output_name);
  for (ValueId& o : outputs_) {
    if (o == from) o = to;
  }
  t.listed_as_output = std::exchange(f.listed_as_output, 0);
}

Node* Graph::sole_user(ValueId id) const {
  const Value& v = value(id);
  return v.uses.size() == 1 && v.listed_as_output == 0 ? v.uses[0].node : nullptr;
}

void Graph::sort() {
  std::vector<Node*> order;
  order.reserve(nodes_.size());
  for (const auto& n : nodes_) {
    n->mark_ = static_cast<int32_t>(order.size());
    order.push_back(n.get());
  }
  std::vector<int32_t> waits(order.size(), 0);  // inputs whose producer is not placed yet
  bool sorted = true;
  for (Node* n : order) {
    for (const ValueId id : n->inputs) {
      if (id == kNoValue || value(id).producer == nullptr) continue;
      ++waits[static_cast<size_t>(n->mark_)];
      sorted = sorted && value(id).producer->mark_ < n->mark_;
    }
  }
  if (sorted) return;

  // Of the nodes that can go next, the one that stood first.
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t i = 0; i < order.size(); ++i) {
    if (waits[i] == 0) ready.push(static_cast<int32_t>(i));
  }
  size_t placed = 0;
  std::vector<Node*> result;
  result.reserve(order.size());
  while (!ready.empty()) {
    Node* n = order[static_cast<size_t>(ready.top())];
    ready.pop();
    ++placed;
    result.push_back(n);
    for (const ValueId id : n->outputs) {
      if (id == kNoValue) continue;
      for (const Use& u : value(id).uses) {
        if (--waits[static_cast<size_t>(u.node->mark_)] == 0) ready.push(u.node->mark_);
      }
    }
  }
  if (placed != order.size()) {
    // Every node left waits for another that is left: walking back over producers must come round.
    Node* n = nullptr;
    for (size_t i = 0; i < order.size() && n == nullptr; ++i) {
      if (waits[i] != 0) n = order[i];
    }
    std::vector<Node*> path;
    std::vector<char> seen(order.size(), 0);
    while (n != nullptr && seen[static_cast<size_t>(n->mark_)] == 0) {
      seen[static_cast<size_t>(n->mark_)] = 1;
      path.push_back(n);
      for (const ValueId id : n->inputs) {
        Node* p = id == kNoValue ? nullptr : value(id).producer;
        if (p != nullptr && waits[static_cast<size_t>(p->mark_)] != 0) {
          n = p;
          break;
        }
      }
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), n));
    std::reverse(path.begin(), path.end());
    std::rotate(path.begin(),
                std::min_element(path.begin(), path.end(),
                                 [](const Node* a, const Node* b) { return a->mark_ < b->mark_; }),
                path.end());
    std::string names;
    for (size_t i = 0; i < path.size() && i < 16; ++i) names += "'" + path[i]->name + "' -> ";
    names += path.size() > 16 ? "..." : "'" + path[0]->name + "'";
    throw Error(ErrorCode::kInvalidModel, "nodes form a cycle: " + names);
  }
  for (Node* n : result) nodes_.splice(nodes_.end(), nodes_, n->self_);
}

// --- copies and walks ---

std::unique_ptr<Graph> Graph::clone() const { return clone(std::make_shared<Counters>(*next_symbol_)); }

std::unique_ptr<Graph> Graph::clone(std::shared_ptr<Counters> symbols) const {
  auto g = std::make_unique<Graph>();
  g->name = name;
  g->doc = doc;
  g->captures = captures;
  g->inputs_ = inputs_;
  g->outputs_ = outputs_;
  g->by_name_ = by_name_;
  g->next_suffix_ = next_suffix_;
  g->next_symbol_ = symbols;
  g->values_.reserve(values_.size());
  for (const auto& v : values_) {
    auto copy = std::make_unique<Value>();
    copy->id = v->id;
    copy->name = v->name;
    copy->type = v->type;
    copy->data = v->data;
    copy->contents = v->contents;
    copy->listed_as_output = v->listed_as_output;
    g->values_.push_back(std::move(copy));
  }
  const auto copy_graph = [&](std::shared_ptr<Graph>& p) {
    if (p) p = std::shared_ptr<Graph>(p->clone(symbols));
  };
  for (const auto& n : nodes_) {
    Node copy = *n;
    copy_graph(copy.body);
    for (auto& [key, attr] : copy.attrs) {
      if (auto* one = std::get_if<std::shared_ptr<Graph>>(&attr)) copy_graph(*one);
      if (auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attr)) {
        for (auto& p : *many) copy_graph(p);
      }
    }
    g->add_node(std::move(copy));
  }
  return g;
}

void for_each_node(Graph& graph, const std::function<void(Graph&, Node&)>& fn) {
  struct Frame {
    std::shared_ptr<Graph> keep;  // null for the outermost
    Graph* graph;
    Node* node;
  };
  const auto first = [](Graph& g) { return g.nodes().empty() ? nullptr : g.nodes().front().get(); };
  std::vector<Frame> stack{{nullptr, &graph, first(graph)}};
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.node == nullptr) {
      stack.pop_back();
      continue;
    }
    Node* n = top.node;
    fn(*top.graph, *n);
    top.node = top.graph->next(n);
    std::vector<std::shared_ptr<Graph>> inner;
    for (const auto& [key, attr] : n->attrs) {
      if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attr); one != nullptr && *one)
        inner.push_back(*one);
      if (const auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attr)) {
        for (const auto& p : *many) {
          if (p) inner.push_back(p);
        }
      }
    }
    // `top` may dangle from here on.
    for (auto it = inner.rbegin(); it != inner.rend(); ++it) stack.push_back({*it, it->get(), first(**it)});
  }
}

}  // namespace hone::ir
