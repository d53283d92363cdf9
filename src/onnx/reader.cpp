#include "onnx/reader.h"

#include <string>
#include <utility>

#include <protozero/pbf_reader.hpp>

#include "base/str.h"
#include "hone/error.h"

namespace hone::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr auto kVarint = pbf_wire_type::varint;
constexpr auto kBytes = pbf_wire_type::length_delimited;
constexpr auto kFixed32 = pbf_wire_type::fixed32;
constexpr auto kFixed64 = pbf_wire_type::fixed64;

// Field number and wire type in one number, for switch. A field of an unexpected wire type is an unknown
// field, as in protobuf.
constexpr uint32_t key(uint32_t field, pbf_wire_type type) { return protozero::tag_and_type(field, type); }

std::string_view view(pbf_reader& r) {
  const protozero::data_view v = r.get_view();
  return {v.data(), v.size()};
}

class Reader {
 public:
  explicit Reader(const ReadLimits& limits) : limits_(limits) {}

  void model(pbf_reader r, ModelProto* m) {
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kVarint): m->ir_version = r.get_int64(); break;
        case key(2, kBytes): m->producer_name = view(r); break;
        case key(3, kBytes): m->producer_version = view(r); break;
        case key(7, kBytes):
          m->has_graph = true;
          graph(r.get_message(), &m->graph, 0);
          break;
        case key(8, kBytes): opset(r.get_message(), &m->opset_import); break;
        case key(14, kBytes): key_value(r.get_message(), &m->metadata); break;
        case key(20, kBytes):
          m->has_training_info = true;
          r.skip();
          break;
        case key(25, kBytes):
          spend(&functions_, 1, limits_.functions, "functions");
          function(r.get_message(), &m->functions.emplace_back());
          break;
        default: r.skip();
      }
    }
  }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

  void spend(int64_t* used, int64_t n, int64_t budget, const char* what) const {
    *used += n;
    if (*used > budget) fail("the model has more than " + std::to_string(budget) + " " + what);
  }

  std::string_view name(pbf_reader& r) {
    const std::string_view s = view(r);
    spend(&names_, 1, limits_.names, "names");
    if (static_cast<int64_t>(s.size()) > limits_.name_bytes) {
      fail("a name is longer than " + std::to_string(limits_.name_bytes) + " bytes");
    }
    if (!is_utf8(s)) fail("a name is not UTF-8: " + quote(s.substr(0, 100)));
    if (s.find('\0') != std::string_view::npos) fail("a name holds a zero byte: " + quote(s.substr(0, 100)));
    return s;
  }

  // Appends one number, or a packed run of them.
  template <class T, class Range>
  void packed(Range range, std::vector<T>* out) {
    for (const auto v : range) {
      spend(&numbers_, 1, limits_.numbers, "numbers");
      out->push_back(static_cast<T>(v));
    }
  }
  template <class T, class V>
  void single(V v, std::vector<T>* out) {
    spend(&numbers_, 1, limits_.numbers, "numbers");
    out->push_back(static_cast<T>(v));
  }

  void key_value(pbf_reader r, std::vector<KeyValue>* out) {
    spend(&values_, 1, limits_.values, "entries");
    KeyValue kv;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kBytes): kv.key = view(r); break;
        case key(2, kBytes): kv.value = view(r); break;
        default: r.skip();
      }
    }
    out->push_back(kv);
  }

  void opset(pbf_reader r, std::vector<OpsetProto>* out) {
    spend(&values_, 1, limits_.values, "entries");
    OpsetProto o;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kBytes): o.domain = name(r); break;
        case key(2, kVarint): o.version = r.get_int64(); break;
        default: r.skip();
      }
    }
    out->push_back(o);
  }

  void check_rank(size_t rank) const {
    if (static_cast<int64_t>(rank) > limits_.rank)
      fail("a tensor has more than " + std::to_string(limits_.rank) + " dimensions");
  }

  void tensor(pbf_reader r, TensorProto* t) {
    spend(&tensors_, 1, limits_.tensors, "tensors");
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kVarint):
          single(r.get_int64(), &t->dims);
          check_rank(t->dims.size());
          break;
        case key(1, kBytes): {
          const auto range = r.get_packed_int64();
          check_rank(range.size());
          packed(range, &t->dims);
          check_rank(t->dims.size());
          break;
        }
        case key(2, kVarint): t->data_type = r.get_int32(); break;
        case key(3, kBytes):
          t->has_segment = true;
          r.skip();
          break;
        case key(4, kFixed32): single(r.get_float(), &t->float_data); break;
        case key(4, kBytes): packed(r.get_packed_float(), &t->float_data); break;
        case key(5, kVarint): single(r.get_int32(), &t->int32_data); break;
        case key(5, kBytes): packed(r.get_packed_int32(), &t->int32_data); break;
        case key(6, kBytes):
          spend(&names_, 1, limits_.names, "strings");
          t->string_data.push_back(view(r));
          break;
        case key(7, kVarint): single(r.get_int64(), &t->int64_data); break;
        case key(7, kBytes): packed(r.get_packed_int64(), &t->int64_data); break;
        case key(8, kBytes): t->name = name(r); break;
        case key(9, kBytes):
          t->has_raw = true;
          t->raw_data = view(r);
          break;
        case key(10, kFixed64): single(r.get_double(), &t->double_data); break;
        case key(10, kBytes): packed(r.get_packed_double(), &t->double_data); break;
        case key(11, kVarint): single(r.get_uint64(), &t->uint64_data); break;
        case key(11, kBytes): packed(r.get_packed_uint64(), &t->uint64_data); break;
        case key(13, kBytes): key_value(r.get_message(), &t->external_data); break;
        case key(14, kVarint): t->data_location = r.get_enum(); break;
        default: r.skip();
      }
    }
  }

  void sparse(pbf_reader r, SparseTensorProto* s) {
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kBytes): tensor(r.get_message(), &s->values); break;
        case key(2, kBytes): tensor(r.get_message(), &s->indices); break;
        case key(3, kVarint):
          single(r.get_int64(), &s->dims);
          check_rank(s->dims.size());
          break;
        case key(3, kBytes): {
          const auto range = r.get_packed_int64();
          check_rank(range.size());
          packed(range, &s->dims);
          check_rank(s->dims.size());
          break;
        }
        default: r.skip();
      }
    }
  }

  void dimension(pbf_reader r, std::vector<DimProto>* out) {
    spend(&values_, 1, limits_.values, "entries");
    DimProto d;
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kVarint):
          d.value = r.get_int64();
          d.param = {};
          break;
        case key(2, kBytes):
          d.param = name(r);
          d.value.reset();
          break;
        default: r.skip();
      }
    }
    out->push_back(d);
    check_rank(out->size());
  }

  void tensor_type(pbf_reader r, TypeProto* t) {
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kVarint): t->elem_type = r.get_int32(); break;
        case key(2, kBytes): {
          if (!t->shape) t->shape.emplace();
          pbf_reader shape = r.get_message();
          while (shape.next()) {
            if (shape.tag_and_type() == key(1, kBytes)) {
              dimension(shape.get_message(), &*t->shape);
            } else {
              shape.skip();
            }
          }
          break;
        }
        default: r.skip();
      }
    }
  }

  // Of the containers only that they are ones is kept: their inner types, which nest without end, are not
  // read.
  void type(pbf_reader r, TypeProto* t) {
    using Kind = TypeProto::Kind;
    while (r.next()) {
      Kind other = Kind::kNone;
      switch (r.tag_and_type()) {
        case key(1, kBytes):
          if (t->kind != Kind::kTensor) *t = {};
          t->kind = Kind::kTensor;
          tensor_type(r.get_message(), t);
          continue;
        case key(4, kBytes): other = Kind::kSequence; break;
        case key(5, kBytes): other = Kind::kMap; break;
        case key(7, kBytes): other = Kind::kOpaque; break;
        case key(8, kBytes): other = Kind::kSparseTensor; break;
        case key(9, kBytes): other = Kind::kOptional; break;
        default: break;
      }
      r.skip();
      if (other != Kind::kNone) {
        *t = {};
        t->kind = other;
      }
    }
  }

  void value_info(pbf_reader r, std::vector<ValueInfoProto>* out) {
    spend(&values_, 1, limits_.values, "entries");
    ValueInfoProto& v = out->emplace_back();
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kBytes): v.name = name(r); break;
        case key(2, kBytes): type(r.get_message(), &v.type); break;
        default: r.skip();
      }
    }
  }

  void attribute(pbf_reader r, AttributeProto* a, int depth) {
    spend(&values_, 1, limits_.values, "entries");
    const auto seen = [a](AttrType t) { a->seen |= 1u << static_cast<unsigned>(t); };
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kBytes): a->name = name(r); break;
        case key(2, kFixed32): a->f = r.get_float(), seen(AttrType::kFloat); break;
        case key(3, kVarint): a->i = r.get_int64(), seen(AttrType::kInt); break;
        case key(4, kBytes): a->s = view(r), seen(AttrType::kString); break;
        case key(5, kBytes):
          if (!a->t) a->t = std::make_unique<TensorProto>();
          tensor(r.get_message(), a->t.get());
          seen(AttrType::kTensor);
          break;
        case key(6, kBytes):
          if (!a->g) a->g = std::make_unique<GraphProto>();
          graph(r.get_message(), a->g.get(), depth + 1);
          seen(AttrType::kGraph);
          break;
        case key(7, kFixed32): single(r.get_float(), &a->floats), seen(AttrType::kFloats); break;
        case key(7, kBytes): packed(r.get_packed_float(), &a->floats), seen(AttrType::kFloats); break;
        case key(8, kVarint): single(r.get_int64(), &a->ints), seen(AttrType::kInts); break;
        case key(8, kBytes): packed(r.get_packed_int64(), &a->ints), seen(AttrType::kInts); break;
        case key(9, kBytes):
          spend(&names_, 1, limits_.names, "strings");
          a->strings.push_back(view(r)), seen(AttrType::kStrings);
          break;
        case key(11, kBytes):
          graph(r.get_message(), &a->graphs.emplace_back(), depth + 1), seen(AttrType::kGraphs);
          break;
        case key(20, kVarint): a->type = r.get_enum(); break;
        case key(21, kBytes): a->ref_attr_name = name(r); break;
        case key(22, kBytes):
          if (!a->sparse_tensor) a->sparse_tensor = std::make_unique<SparseTensorProto>();
          sparse(r.get_message(), a->sparse_tensor.get());
          seen(AttrType::kSparseTensor);
          break;
        // Kinds that no operator here takes: that they are there is enough for the message.
        case key(10, kBytes): r.skip(), seen(AttrType::kTensors); break;
        case key(23, kBytes): r.skip(), seen(AttrType::kSparseTensors); break;
        case key(14, kBytes): r.skip(), seen(AttrType::kTypeProto); break;
        case key(15, kBytes): r.skip(), seen(AttrType::kTypeProtos); break;
        default: r.skip();
      }
    }
  }

  void node(pbf_reader r, NodeProto* n, int depth) {
    spend(&nodes_, 1, limits_.nodes, "nodes");
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kBytes): n->input.push_back(name(r)); break;
        case key(2, kBytes): n->output.push_back(name(r)); break;
        case key(3, kBytes): n->name = name(r); break;
        case key(4, kBytes): n->op_type = name(r); break;
        case key(5, kBytes): attribute(r.get_message(), &n->attribute.emplace_back(), depth); break;
        case key(7, kBytes): n->domain = name(r); break;
        case key(8, kBytes): n->overload = name(r); break;
        default: r.skip();
      }
      const auto most = static_cast<int64_t>(std::max(n->input.size(), n->output.size()));
      if (most > limits_.node_inputs) {
        fail("node '" + std::string(n->name) + "' has more than " + std::to_string(limits_.node_inputs) +
             " inputs or outputs");
      }
      if (static_cast<int64_t>(n->attribute.size()) > limits_.node_attributes) {
        fail("node '" + std::string(n->name) + "' has more than " + std::to_string(limits_.node_attributes) +
             " attributes");
      }
    }
  }

  void graph(pbf_reader r, GraphProto* g, int depth) {
    if (depth > limits_.subgraph_depth)
      fail("subgraphs nest deeper than " + std::to_string(limits_.subgraph_depth));
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kBytes): node(r.get_message(), &g->node.emplace_back(), depth); break;
        case key(2, kBytes): g->name = name(r); break;
        case key(5, kBytes): tensor(r.get_message(), &g->initializer.emplace_back()); break;
        case key(10, kBytes): g->doc = view(r); break;
        case key(11, kBytes): value_info(r.get_message(), &g->input); break;
        case key(12, kBytes): value_info(r.get_message(), &g->output); break;
        case key(13, kBytes): value_info(r.get_message(), &g->value_info); break;
        case key(15, kBytes): sparse(r.get_message(), &g->sparse_initializer.emplace_back()); break;
        default: r.skip();
      }
    }
  }

  void function(pbf_reader r, FunctionProto* f) {
    while (r.next()) {
      switch (r.tag_and_type()) {
        case key(1, kBytes): f->name = name(r); break;
        case key(4, kBytes): f->input.push_back(name(r)); break;
        case key(5, kBytes): f->output.push_back(name(r)); break;
        case key(6, kBytes): f->attribute.push_back(name(r)); break;
        case key(7, kBytes): node(r.get_message(), &f->node.emplace_back(), 0); break;
        case key(9, kBytes): opset(r.get_message(), &f->opset_import); break;
        case key(10, kBytes): f->domain = name(r); break;
        case key(11, kBytes): attribute(r.get_message(), &f->attribute_proto.emplace_back(), 0); break;
        case key(12, kBytes): value_info(r.get_message(), &f->value_info); break;
        case key(13, kBytes): f->overload = name(r); break;
        default: r.skip();
      }
    }
  }

  const ReadLimits& limits_;
  int64_t nodes_ = 0, tensors_ = 0, values_ = 0, names_ = 0, functions_ = 0, numbers_ = 0;
};

}  // namespace

ModelProto read_model(const void* data, size_t size, const ReadLimits& limits) {
  ModelProto m;
  ErrorContext context;
  context.stage = "import";
  try {
    Reader(limits).model(pbf_reader(static_cast<const char*>(data), size), &m);
  } catch (const protozero::exception& e) {
    throw Error(ErrorCode::kInvalidModel, std::string("this is no ONNX file, or a damaged one: ") + e.what(),
                context);
  } catch (const Error& e) {
    throw Error(e.code(), e.message(), context, e.where());
  }
  return m;
}

}  // namespace hone::onnx
