#include "training_log.h"

#include <cstdarg>
#include <cstdio>

namespace aimaster {
namespace {

[[gnu::format(printf, 2, 3)]] void Print(std::string& out, const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  out.append(line, static_cast<size_t>(length));
}

// "2025-03-01 10:00:00,123" of a step.
struct Clock {
  explicit Clock(uint64_t step)
      : hour(static_cast<unsigned>(step / 450 % 24)),
        minute(static_cast<unsigned>(step / 7 % 60)),
        second(static_cast<unsigned>(step * 8 % 60)),
        milli(static_cast<unsigned>(step * 7919 % 1000)) {}
  unsigned hour, minute, second, milli;
};

}  // namespace

double TrainingLog::Around(double middle) { return middle * (0.9 + 0.2 * (Below(10'000) / 10'000.0)); }

// What NCCL, torch and the launcher say while a job comes up.
void TrainingLog::Start(std::string& out) {
  Print(out, "using world size: 512, data-parallel size: 16, tensor-model-parallel size: 8, pipeline size: 4\n");
  Print(out, "------------------------ arguments ------------------------\n");
  for (const char* name :
       {"adam_beta1", "attention_dropout", "distributed_timeout_minutes", "check_for_nan_in_loss",
        "exit_on_missing_checkpoint", "gradient_accumulation_fusion", "num_layers", "lr_warmup_iters"}) {
    Print(out, "  %s ", name);
    out.append(48 - std::char_traits<char>::length(name), '.');
    Print(out, " %u\n", Below(100));
  }
  for (unsigned channel = 0; channel < 32; ++channel) {
    Print(out, "gpu-07:811:902 [3] NCCL INFO Channel %02u/32 : 24 25 26 27 28 29 30 31\n", channel);
    Print(out, "gpu-07:811:902 [3] NCCL INFO Channel %02u/0 : 27[3] -> 28[4] via P2P/CUMEM/read\n", channel);
    Print(out, "gpu-07:811:%u [3] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA %u 'mlx5_%u'\n", 900 + channel,
          channel % 8, channel % 8);
  }
  Print(out, "gpu-07:811:902 [3] NCCL INFO comm 0x55d0c8f0 rank 27 nranks 512 cudaDev 3 busId 5d000 - Init COMPLETE\n");
  Print(out,
        "[rank27]:[W301 10:00:00.123456789 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 27]  using GPU 3 to "
        "perform barrier as devices used by this process are currently unknown.\n");
  Print(out,
        "/opt/env/lib/python3.10/site-packages/torch/utils/checkpoint.py:1399: FutureWarning: `torch.cpu.amp.autocast("
        "args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.\n"
        "  with device_autocast_ctx, torch.cpu.amp.autocast(**cpu_autocast_kwargs):\n");
}

void TrainingLog::Step(std::string& out) {
  ++step_;
  const Clock at(step_);
  const auto step = static_cast<unsigned long long>(step_);
  switch (Below(6)) {
    case 0:
      Print(out,
            " [2025-03-01 %02u:%02u:%02u] iteration %8llu/  500000 | consumed samples: %12llu | elapsed time per "
            "iteration "
            "(ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: 2.400000E-04 | global batch size:   "
            "512 "
            "| lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of skipped iterations:   0 | number of nan "
            "iterations:   0 |\n",
            at.hour, at.minute, at.second, step, step * 512, Around(8123), Around(412), Around(2.1), Around(0.41));
      break;
    case 1:
      Print(out, "{'loss': %.4f, 'grad_norm': %.6f, 'learning_rate': %.10f, 'epoch': %.2f}\n", Around(1.8), Around(0.6),
            Around(2e-5), static_cast<double>(step_) / 9000);
      break;
    case 2:
      Print(
          out,
          "[2025-03-01 %02u:%02u:%02u,%03u] [INFO] [logging.py:96:log_dist] [Rank 0] step=%llu, skipped=0, lr=[%.8f], "
          "mom=[(0.9, 0.95)]\n",
          at.hour, at.minute, at.second, at.milli, step, Around(2e-4));
      Print(out,
            "[2025-03-01 %02u:%02u:%02u,%03u] [INFO] [timer.py:215:stop] epoch=0/micro_step=%llu/global_step=%llu, "
            "RunningAvgSamplesPerSec=%.6f, CurrSamplesPerSec=%.6f, MemAllocated=61.2GB, MaxMemAllocated=70.1GB\n",
            at.hour, at.minute, at.second, at.milli, step * 4, step, Around(210), Around(213));
      break;
    case 3:
      Print(
          out,
          "INFO %02u:%02u:%02u train.py:311 step %llu | loss %.4f | lr %.3e | %.0f tok/s | mfu %.1f%% | mem %.1f GiB\n",
          at.hour, at.minute, at.second, step, Around(2.0), Around(3e-4), Around(12034), Around(41), Around(70));
      break;
    case 4:
      Print(out, "[rank%u]: step %llu forward %.2f ms backward %.2f ms optimizer %.2f ms data %.2f ms\n", Below(8),
            step, Around(310), Around(620), Around(41), Around(3));
      break;
    default:
      Print(
          out,
          "\x1b[32m%02u:%02u:%02u\x1b[0m | \x1b[1mINFO    \x1b[0m | \x1b[36mtrainer\x1b[0m:\x1b[36mfit\x1b[0m:\x1b[36m"
          "%u\x1b[0m - \x1b[1mepoch 3 batch %llu loss %.4f\x1b[0m\n",
          at.hour, at.minute, at.second, 200 + Below(50), step, Around(1.2));
      break;
  }
}

// As tqdm draws it: the same line again and again, with carriage returns.
void TrainingLog::ProgressBar(std::string& out) {
  const uint32_t first = Below(60);
  for (uint32_t percent = first; percent < first + 20; ++percent) {
    Print(out, "\rEpoch 3: %3u%%|", percent);
    for (uint32_t block = 0; block < 10; ++block) out += block * 10 < percent ? "█" : " ";
    Print(out, "| %u/1875 [%02u:%02u<%02u:%02u, %5.2fit/s, v_num=3, train_loss=%.3f]", percent * 18, percent / 60,
          percent % 60, 1, 59 - percent % 60, Around(6.5), Around(0.73));
  }
  out += '\n';
}

// What healthy jobs print now and then, with words that also stand in errors.
void TrainingLog::Occasional(std::string& out) {
  const Clock at(step_);
  switch (Below(10)) {
    case 0:
      Print(out, "saving checkpoint at iteration %8llu to /ckpt/run-7 in torch_dist format\n",
            static_cast<unsigned long long>(step_));
      Print(out, "  successfully saved checkpoint from iteration %8llu to /ckpt/run-7\n",
            static_cast<unsigned long long>(step_));
      break;
    case 1:
      Print(out, "validation loss at iteration %llu | lm loss value: %.6E | lm loss PPL: %.6E |\n",
            static_cast<unsigned long long>(step_), Around(2.0), Around(7.4));
      break;
    case 2:
      Print(out, "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 32768.0\n");
      break;
    case 3:
      Print(out, "TestError: %.4f  mean absolute error: %.3f  0 errors, 3 warnings\n", Around(0.03), Around(4.1));
      break;
    case 4:
      Print(out,
            "WARNING:urllib3.connectionpool:Retrying (Retry(total=2, connect=None, read=None, redirect=None, "
            "status=None)) "
            "after connection broken by 'ReadTimeoutError(\"HTTPSConnectionPool(host='hub', port=443): Read timed "
            "out.\")'\n");
      break;
    case 5:
      Print(out, "Evaluating: 100%%|██████████| 500/500 [01:12<00:00,  6.91it/s]\n");
      break;
    case 6:
      Print(out,
            "gpu-07:811:911 [3] NCCL INFO AllReduce: opCount %x sendbuff 0x7f0a12000000 recvbuff 0x7f0a12000000 count "
            "%u datatype 7 op 0 root 0 comm 0x55d0c8f0 [nranks=8] stream 0x55d0c123\n",
            Below(100'000), Below(1u << 24));
      break;
    case 7:
      Print(out, "wandb: Network error (ConnectTimeout), entering retry loop.\n");
      break;
    case 8:
      Print(out,
            "I0301 %02u:%02u:%02u.%03u456  811 dataloader.py:88] worker 3 prefetched shard "
            "s3://bucket/train/shard-%06u.tar "
            "in %.1f s\n",
            at.hour, at.minute, at.second, at.milli, Below(100'000), Around(2.3));
      break;
    default:
      Print(out, "Timer: forward %.2f s, exception handling off, timeout=1800, num_alloc_retries: 0, num_ooms: 0\n",
            Around(0.3));
      break;
  }
}

// What was survived, and at last what was not.
void TrainingLog::Trouble(std::string& out) {
  switch (Below(4)) {
    case 0:
      out +=
          "Traceback (most recent call last):\n  File \"/app/data.py\", line 88, in fetch\n    return "
          "self.read(shard)\n"
          "  File \"/app/data.py\", line 41, in read\n    raise KeyError(shard)\nKeyError: 'shard-000123'\n"
          "skipping the shard, going on\n";
      break;
    case 1:
      out +=
          "[rank3]:[E301 10:00:00.100000000 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation "
          "timeout: "
          "WorkNCCL(SeqNum=216, OpType=ALLREDUCE, NumelIn=4517121, NumelOut=4517121, Timeout(ms)=600000) ran for "
          "600123 "
          "milliseconds before timing out.\n";
      break;
    case 2:
      out += "gpu-07:811:902 [3] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n";
      break;
    default:
      out +=
          "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/app/train.py\", line 311, in <module>\n"
          "[rank3]:     loss.backward()\n[rank3]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n";
      break;
  }
}

std::string TrainingLog::Next(size_t bytes) {
  std::string out;
  out.reserve(bytes + 4096);
  if (!has_started_) Start(out);
  has_started_ = true;
  while (out.size() < bytes) {
    Step(out);
    if (Below(40) == 0) ProgressBar(out);
    if (Below(50) == 0) Occasional(out);
    if (Below(100'000) == 0) Trouble(out);
  }
  return out;
}

}  // namespace aimaster
