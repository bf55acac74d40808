"""TorchMetrics: metrics of the whole data, of which each rank has seen a part."""

import torch
import torch.distributed as dist
from torchmetrics import CatMetric, MeanMetric, MetricCollection
from torchmetrics.classification import BinaryAUROC, MulticlassAccuracy, MulticlassConfusionMatrix


def collection(**options):
    accuracy, confusion = MulticlassAccuracy(3, **options), MulticlassConfusionMatrix(3, **options)
    return MetricCollection({"accuracy": accuracy, "confusion": confusion})


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    scores, labels = torch.rand(60, 3), torch.randint(3, (60,))
    metrics, whole = collection(), collection(sync_on_compute=False)
    for part in torch.arange(60).split(10)[rank::size]:
        metrics.update(scores[part], labels[part])
    values = metrics.compute()
    whole.update(scores, labels)
    for name, expected in whole.compute().items():
        torch.testing.assert_close(values[name], expected)
    assert values["confusion"].sum() == 60

    mean, kept, auroc = MeanMetric(), CatMetric(), BinaryAUROC()
    mean.update(float(rank))
    kept.update(torch.full((rank + 1,), float(rank)))  # as many as no other rank has
    auroc.update(scores[rank::size, 0], labels[rank::size] > 0)
    assert mean.compute() == sum(range(size)) / size
    assert sorted(kept.compute().tolist()) == sorted(r for r in range(size) for _ in range(r + 1))
    alone = BinaryAUROC(sync_on_compute=False)
    alone.update(scores[:, 0], labels > 0)
    torch.testing.assert_close(auroc.compute(), alone.compute())
    print(f"accuracy {values['accuracy']:.4f}, AUROC {auroc.compute():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
