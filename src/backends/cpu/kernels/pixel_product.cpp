#include "backends/cpu/kernels/pixel_product.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hone::cpu {

struct PixelProduct::Pixel {
  int64_t image;
  Extent3 at;  // in the grid of the phase
};

struct PixelProduct::Scratch {
  const float** sources;
  float** dst;
  int64_t* ids;
  float* zeros;
  int64_t bytes;
};

PixelProduct::Scratch PixelProduct::carve(void* base) const {
  Carver carver(base);
  Scratch s{};
  s.sources = carver.take<const float*>(block_rows_ * most_taps_);
  s.dst = carver.take<float*>(block_rows_);
  s.ids = carver.take<int64_t>(block_rows_);
  s.zeros = carver.take<float>(shape_.ic);
  s.bytes = carver.used();
  return s;
}

PixelProduct::PixelProduct(Isa isa, PixelProductShape shape)
    : kernels_(&tile_kernels(isa)), shape_(std::move(shape)) {
  const PixelProductShape& s = shape_;
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups;
  const int64_t panels = s.groups * ceil_div(ocg, kernels_->nr);
  int64_t most_rows = 1, total_taps = 0, in_step = 1;
  for (const PixelPhase& p : s.phases) total_taps += static_cast<int64_t>(p.taps.size());
  first_chunk_.push_back(0);
  for (const PixelPhase& p : s.phases) {
    std::vector<int64_t> offsets;
    std::array<Extent3, 2> reach{};
    for (size_t t = 0; t < p.taps.size(); ++t) {
      const Extent3& tap = p.taps[t];
      offsets.push_back(((tap[0] * s.in[1] + tap[1]) * s.in[2] + tap[2]) * s.src_stride);
      for (size_t d = 0; d < 3; ++d) {
        reach[0][d] = t == 0 ? tap[d] : std::min(reach[0][d], tap[d]);
        reach[1][d] = t == 0 ? tap[d] : std::max(reach[1][d], tap[d]);
      }
    }
    offsets_.push_back(std::move(offsets));
    reach_.push_back(reach);

    const int64_t rows = s.batch * p.count[0] * p.count[1] * p.count[2];
    const auto taps = static_cast<int64_t>(p.taps.size());
    const double flops =
        2.0 * static_cast<double>(rows) * static_cast<double>(s.oc * icg * std::max<int64_t>(1, taps));
    const int64_t share = std::max<int64_t>(1, total_taps);
    const int64_t a_floats =
        s.batch * (s.in[0] * s.in[1] * s.in[2] * s.ic * std::max<int64_t>(1, taps) / share) + rows * s.oc;
    splits_.push_back(
        split_work(1, ceil_div(rows, kernels_->mr), panels, flops, a_floats, s.oc * icg * taps));
    first_chunk_.push_back(first_chunk_.back() + (rows == 0 ? 0 : splits_.back().n_chunks()));
    most_rows =
        std::max(most_rows, ceil_div(splits_.back().rows.count, splits_.back().rows.parts) * kernels_->mr);
    most_taps_ = std::max(most_taps_, taps);
    in_step = std::max(in_step, p.in_step[1] * p.in_step[2]);
  }
  // A block's tables and the input it reads share L2 with a panel of weights.
  const int64_t l2_floats = static_cast<int64_t>(cache_sizes().l2_bytes) / 4;
  const int64_t fit = std::min<int64_t>(4096, l2_floats / 2 / (s.ic * in_step + 2 * most_taps_ + 4));
  block_rows_ = std::clamp<int64_t>(fit / kernels_->mr * kernels_->mr, kernels_->mr,
                                    std::max<int64_t>(kernels_->mr, most_rows));
  worker_bytes_ = carve(nullptr).bytes;
  if (s.phases.size() == 1 && s.in == s.out) {
    const PixelPhase& p = s.phases[0];
    const Extent3 ones{1, 1, 1}, zeros{0, 0, 0};
    linear_ = p.in_step == ones && p.out_step == ones && p.out_first == zeros && p.count == s.out &&
              p.taps == std::vector<Extent3>{zeros};
  }
}

void PixelProduct::point_tile(const ConvArgs& args, size_t phase, const Scratch& scratch, const Pixel* pixels,
                              int64_t rows, const float** out) const {
  const PixelPhase& p = shape_.phases[phase];
  const std::vector<int64_t>& offsets = offsets_[phase];
  const auto& [least, greatest] = reach_[phase];
  const Extent3& in = shape_.in;
  int64_t base[kMaxTileRows];
  Extent3 origin[kMaxTileRows];
  bool inside = true;
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t d = 0; d < 3; ++d) {
      origin[r][d] = pixels[r].at[d] * p.in_step[d];
      inside = inside && origin[r][d] + least[d] >= 0 && origin[r][d] + greatest[d] < in[d];
    }
    base[r] = (((pixels[r].image * in[0] + origin[r][0]) * in[1] + origin[r][1]) * in[2] + origin[r][2]) *
              shape_.src_stride;
  }
  if (inside) {
    for (const int64_t offset : offsets)
      for (int64_t r = 0; r < rows; ++r) *out++ = args.src + (base[r] + offset);
    return;
  }
  for (size_t t = 0; t < offsets.size(); ++t)
    for (int64_t r = 0; r < rows; ++r) {
      bool real = true;
      for (size_t d = 0; d < 3; ++d) {
        const int64_t at = origin[r][d] + p.taps[t][d];
        real = real && at >= 0 && at < in[d];
      }
      *out++ = real ? args.src + (base[r] + offsets[t]) : scratch.zeros;
    }
}

void PixelProduct::run_chunk(const ConvArgs& args, int64_t chunk, void* scratch,
                             const BlockWalk& walk) const {
  const PixelProductShape& s = shape_;
  const auto phase = static_cast<size_t>(std::upper_bound(first_chunk_.begin(), first_chunk_.end(), chunk) -
                                         first_chunk_.begin() - 1);
  const PixelPhase& p = s.phases[phase];
  const WorkSplit& split = splits_[phase];
  const int64_t part = chunk - first_chunk_[phase];
  const int64_t row_part = part % split.rows.parts, panel_part = part / split.rows.parts;
  const int64_t all_rows = s.batch * p.count[0] * p.count[1] * p.count[2];
  const int64_t row0 = split.rows.begin(row_part) * kernels_->mr;
  const int64_t row1 = std::min(all_rows, split.rows.begin(row_part + 1) * kernels_->mr);

  const Scratch tables = carve(scratch);
  std::memset(tables.zeros, 0, static_cast<size_t>(s.ic) * sizeof(float));
  RowBlock block;
  block.n_taps = static_cast<int64_t>(p.taps.size());
  block.run = s.ic / s.groups;
  block.sources = tables.sources;
  block.dst = tables.dst;
  block.ids = tables.ids;

  if (linear_) {
    // A 1x1 kernel at stride 1: output pixel = input pixel, nothing to decode.
    for (int64_t at = row0; at < row1; at += block_rows_) {
      block.rows = std::min(block_rows_, row1 - at);
      for (int64_t r = 0; r < block.rows; ++r) {
        tables.sources[r] = args.src + (at + r) * s.src_stride;
        tables.dst[r] = args.dst + (at + r) * s.dst_stride;
        tables.ids[r] = at + r;
      }
      run_group_panels(*kernels_, block, args, args.weights + p.weights, s.groups, s.ic, s.oc,
                       split.panels.begin(panel_part), split.panels.begin(panel_part + 1), walk);
    }
    return;
  }
  Pixel pixel{};
  int64_t rest = row0;
  for (size_t d = 3; d-- > 0; rest /= p.count[d]) pixel.at[d] = rest % p.count[d];
  pixel.image = rest;
  for (int64_t at = row0; at < row1; at += block_rows_) {
    block.rows = std::min(block_rows_, row1 - at);
    const EvenSplit tiles = block.tiles(kernels_->mr);
    for (int64_t t = 0; t < tiles.parts; ++t) {
      Pixel pixels[kMaxTileRows];
      const int64_t r0 = tiles.begin(t), rows = tiles.begin(t + 1) - r0;
      for (int64_t r = 0; r < rows; ++r) {
        pixels[r] = pixel;
        int64_t id = pixel.image;
        for (size_t d = 0; d < 3; ++d) id = id * s.out[d] + p.out_first[d] + pixel.at[d] * p.out_step[d];
        tables.ids[r0 + r] = id;
        tables.dst[r0 + r] = args.dst + id * s.dst_stride;
        if (++pixel.at[2] < p.count[2]) continue;
        pixel.at[2] = 0;
        if (++pixel.at[1] < p.count[1]) continue;
        pixel.at[1] = 0;
        if (++pixel.at[0] < p.count[0]) continue;
        pixel.at[0] = 0;
        ++pixel.image;
      }
      point_tile(args, phase, tables, pixels, rows, tables.sources + r0 * block.n_taps);
    }
    run_group_panels(*kernels_, block, args, args.weights + p.weights, s.groups, s.ic, s.oc,
                     split.panels.begin(panel_part), split.panels.begin(panel_part + 1), walk);
  }
}

void run_group_panels(const TileKernels& kernels, const RowBlock& block, const ConvArgs& args,
                      const float* weights, int64_t groups, int64_t ic, int64_t oc, int64_t panel0,
                      int64_t panel1, const BlockWalk& walk) {
  const int64_t icg = ic / groups, ocg = oc / groups;
  const int64_t group_panels = ceil_div(ocg, kernels.nr);
  const int64_t panel_floats = block.n_taps * block.run * kernels.nr;
  for (int64_t p = panel0; p < panel1;) {
    const int64_t group = p / group_panels;
    PanelRun run;
    run.panels = weights + p * panel_floats;
    run.first = p % group_panels;
    run.count = std::min(group_panels - run.first, panel1 - p);
    run.n = ocg;
    run.column_base = group * ocg;
    run.k_offset = group * icg;
    run_block(kernels, block, run, args.epilogue, walk);
    p += run.count;
  }
}

}  // namespace hone::cpu
