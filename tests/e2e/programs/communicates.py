"""A rank of a small PyTorch program on Gloo that knows nothing of being traced. Its first argument names what it does;
what it prints, a test compares.

It keeps its tensors and destroys its groups: torch aborts a program of Python that ends while a thread of Gloo's is the
last one to hold a tensor of Python's, now and then, whoever looks or does not.
"""
import os
import sys
import time
from torch.distributed import all_reduce, init_process_group  # names of its own, bound before anything happens

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

RANK, SIZE = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


KEPT = []


def ones(count=4, kind=torch.float32):
    KEPT.append(torch.ones(count, dtype=kind))
    return KEPT[-1]


def parts(count=4):
    return [ones(count) for _ in range(SIZE)]


def wait_for_file(name):
    """As little as possible of this program goes on while it stands."""
    print("stands at", name, flush=True)
    while not os.path.exists(name):
        time.sleep(0.01)


def everything():
    """Each collective once, and those for objects."""
    all_reduce(ones(8))
    dist.all_reduce_coalesced([ones(1), ones(2)])
    dist.broadcast(ones(3, torch.int64), 1)
    dist.reduce(ones(5), 1)
    dist.all_gather(parts(), ones())
    dist.all_gather_coalesced([[ones()] for _ in range(SIZE)], [ones()])
    dist.gather(ones(), parts() if RANK == 1 else None, dst=1)
    dist.scatter(ones(), parts() if RANK == 1 else None, src=1)
    dist.barrier()
    dist.monitored_barrier()
    dist.all_to_all_single(ones(SIZE), ones(SIZE))
    objects = [None] * SIZE
    dist.all_gather_object(objects, {"rank": RANK})  # two all_gather
    dist.broadcast_object_list(["x"], 0)  # two broadcast
    print(objects, dist.get_rank(), dist.get_world_size())


def not_on_gloo():
    """What this backend has not, fails as it would, and is over."""
    tried = [lambda: dist.reduce_scatter(ones(), parts()), lambda: dist.reduce_scatter_tensor(ones(), ones(4 * SIZE)),
             lambda: dist.all_gather_into_tensor(ones(4 * SIZE), ones()), lambda: dist.all_to_all(parts(), parts())]
    for one in tried:
        try:
            one()
            print("went")
        except RuntimeError as problem:
            print(str(problem).splitlines()[0])


def groups():
    halves = [dist.new_group([rank for rank in range(SIZE) if rank % 2 == half]) for half in (0, 1)]
    again = dist.new_group(list(range(SIZE)))
    dist.all_reduce(ones(), group=halves[RANK % 2])
    dist.all_reduce(ones(), group=again)
    dist.broadcast(ones(), SIZE - 1, group=again)
    if RANK == 0:
        print(halves[1] is dist.GroupMember.NON_GROUP_MEMBER)
    dist.destroy_process_group(halves[RANK % 2])
    wait_for_file("look")


def begin_again():
    for number in range(2):
        dist.all_reduce(ones())
        dist.barrier()
        dist.destroy_process_group()
        # At a port it might still meet the store before.
        place = "file:" + "//" + os.path.abspath("store%d" % number)
        dist.init_process_group("gloo", place, rank=RANK, world_size=SIZE)
    dist.all_reduce(ones())


def messages():
    other = 1 - RANK
    if RANK == 0:
        dist.send(ones(2), other)
        dist.recv(ones(2), other)
    else:
        dist.recv(ones(2))  # from whoever
        dist.send(ones(2), other)
    one, two = dist.isend(ones(3), other), dist.irecv(ones(3), other)
    one.wait()
    two.wait()
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, ones(4), other),
                                           dist.P2POp(dist.irecv, ones(4), other)]):
        request.wait()


def late():
    """Rank 1 comes late to its third."""
    dist.all_reduce(ones())
    dist.all_reduce(ones())
    if RANK == 1:
        wait_for_file("go")
    dist.all_reduce(ones(16))
    wait_for_file("end")


def asynchronous():
    """Rank 0 issues four, whose end it learns of in four ways; rank 1 comes late."""
    if RANK == 1:
        wait_for_file("go")
        for _ in range(5):
            dist.all_reduce(ones())
        wait_for_file("end")
        return
    works = [dist.all_reduce(ones(), async_op=True) for _ in range(5)]
    future = works[3].get_future()
    works.pop()  # this one's end nobody will learn of
    wait_for_file("issued")
    works[0].wait()
    while not works[1].is_completed():
        time.sleep(0.01)
    future.wait()
    wait_for_file("end")  # works[2] is never asked for
    del works


def fails():
    """Rank 1 dies in the middle: rank 0 hears of it as it would."""
    dist.all_reduce(ones())
    if RANK == 1:
        os._exit(3)
    try:
        dist.all_reduce(ones())
        print("went")
    except RuntimeError:
        print("failed")
    wait_for_file("end")


def forks():
    """Data loaders, and a child of the same program by each way there is."""
    import multiprocessing

    loader = torch.utils.data.DataLoader(list(range(8)), num_workers=2)
    dist.all_reduce(ones())
    print(sum(int(batch) for batch in loader))
    for way in ("fork", "spawn"):
        child = multiprocessing.get_context(way).Process(target=child_of_a_rank)
        child.start()
        child.join()
        print(way, child.exitcode)
    dist.all_reduce(ones())


def child_of_a_rank():
    torch.ones(3).sum()
    assert not dist.is_initialized() or dist.get_world_size() == SIZE  # a forked one has its parent's


class Net(torch.nn.Module):
    def __init__(self, is_sparse=False):
        super().__init__()
        self.embedded = torch.nn.Embedding(10, 7, sparse=is_sparse)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(7, 7) for _ in range(4)])
        self.norm = torch.nn.BatchNorm1d(7)  # with buffers, which are broadcast
        self.unused = torch.nn.Linear(7, 7)

    def forward(self, tokens, skip=False):
        x = self.embedded(tokens)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        x = self.norm(x)
        return x if skip else self.unused(x)


def train(*hows):
    """Each in a group of its own, so that they can be told apart."""
    for how in hows:
        train_one(how, dist.new_group())
    dist.barrier()


def train_one(how, group):
    """Prints a digest of the parameters after each step, to the last bit."""
    torch.manual_seed(1)
    options = {"view": {"gradient_as_bucket_view": True}, "unused": {"find_unused_parameters": True},
               "static": {"static_graph": True},
               "unused_view": {"find_unused_parameters": True, "gradient_as_bucket_view": True}}.get(how, {})
    dist._DEFAULT_FIRST_BUCKET_BYTES = 300  # so that there are several
    net = Net(is_sparse=how == "sparse")
    model = DistributedDataParallel(net, bucket_cap_mb=0.0003, process_group=group, **options)
    if how == "hook":
        model.register_comm_hook(group, default_hooks.allreduce_hook)
    if how == "half":
        model.register_comm_hook(group, default_hooks.fp16_compress_hook)
    if how == "builtin":
        model._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    if how == "two_hooks":
        model.register_comm_hook(group, default_hooks.allreduce_hook)
        try:
            model.register_comm_hook(group, default_hooks.allreduce_hook)
        except RuntimeError as problem:
            print(str(problem).splitlines()[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(number):
        torch.manual_seed(100 * number + RANK)
        tokens = torch.randint(0, 10, (6,))
        loss = model(tokens, skip=how.startswith("unused") and number % 2 == 1).square().sum()
        loss.backward()

    def digest():
        optimizer.step()
        optimizer.zero_grad(set_to_none=how == "none")
        print(how, [float(parameter.detach().double().sum()).hex() for parameter in net.parameters()])

    if how.startswith("join"):
        with model.join(divide_by_initial_world_size=how == "join_static"):
            for number in range(3 + RANK):
                step(number)
                digest()
    else:
        for number in range(5):
            if how == "no_sync" and number % 2 == 0:
                with model.no_sync():
                    step(number)
                continue
            step(number)
            digest()


def trace_late():
    """A program that switches it on itself, with names of its own from before."""
    import types
    import aimaster

    class Lazy(types.ModuleType):
        def __getattribute__(self, name):
            print("a lazy module was asked for", name)
            return super().__getattribute__(name)

    sys.modules["lazy"] = Lazy("lazy")
    all_reduce(ones())
    print(aimaster.trace_collectives(), aimaster.trace_collectives())
    all_reduce(ones())
    dist.all_reduce(ones())


def lifetimes():
    """What the program lets go of is gone: at once, or when Gloo has let go of it too."""
    import gc
    import weakref

    group = dist.new_group()
    tensor = torch.ones(4)
    work = dist.all_reduce(tensor, group=group, async_op=True)
    work.wait()
    gone = weakref.ref(work)
    del work
    print("work", gone() is None)
    work = dist.all_reduce(tensor, group=group, async_op=True)
    future = work.get_future()
    del work
    future.wait()
    gone = weakref.ref(tensor)
    del future, tensor
    wait_until_gone("tensor", gone)
    model = DistributedDataParallel(torch.nn.Linear(4, 4), process_group=group)
    model(ones()).sum().backward()
    gone = weakref.ref(model.reducer)
    del model
    gc.collect()
    print("reducer", gone() is None)
    dist.barrier()
    dist.destroy_process_group(group)
    gone = weakref.ref(group)
    del group
    print("group", gone() is None)


def wait_until_gone(what, gone):
    end = time.monotonic() + 30
    while gone() is not None and time.monotonic() < end:
        time.sleep(0.01)
    print(what, gone() is None)


def many():
    for _ in range(1000):
        dist.all_reduce(ones())
        dist.all_reduce(ones(), async_op=True).wait()


if __name__ == "__main__":
    init_process_group("gloo")
    what, *more = sys.argv[1:]
    globals()[what](*more)
    dist.destroy_process_group()
