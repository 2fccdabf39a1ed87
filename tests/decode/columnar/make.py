"""Writes the files of columns.rs, as pandas, pyarrow and polars write them, beside the same rows as text.

Run with pyarrow 26, pandas 3 and polars 2: `python make.py`. The files are committed, so that tests need none of them.
"""
import datetime
import decimal
import json
import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

random.seed(7)
rows = [(random.random(), random.random() < 0.4) for _ in range(60)]
plain = pd.DataFrame({"score": [z for z, _ in rows], "label": [int(y) for _, y in rows]})
plain.to_csv("plain.csv", index=False)
plain.to_parquet("plain.parquet", index=False)
plain.to_feather("plain.feather")
table = pa.Table.from_pandas(plain, preserve_index=False)
pq.write_table(table, "plain.zstd.parquet", compression="zstd", row_group_size=17, data_page_version="2.0")
with pa.ipc.new_stream("plain.arrows", table.schema) as out:
    for batch in table.to_batches(max_chunksize=25):
        out.write_batch(batch)
pl.from_pandas(plain).with_columns(pl.col("label").cast(pl.Boolean)).write_ipc("plain.polars.arrow", compression="lz4")

# Text, categories, decimals, a weight and a cluster; one row at a time, as CSV.
words = pd.DataFrame({
    "score": [decimal.Decimal(round(z * 10**6)).scaleb(-6) for z, _ in rows],
    "label": pd.Categorical(["spam" if y else "ham" for _, y in rows]),
    "weight": [0.5 + (i % 4) for i in range(60)],
})
words.to_parquet("words.parquet", index=False)
words.to_csv("words.csv", index=False)

# Class probabilities as a list.
probs = [[z / 2, z / 2, 1 - z] for z, _ in rows]
classes = [i % 3 for i in range(60)]
pq.write_table(pa.table({"probs": probs, "label": classes}), "vectors.parquet")
pd.DataFrame({"p0": [p[0] for p in probs], "p1": [p[1] for p in probs], "p2": [p[2] for p in probs],
              "label": classes}).to_csv("vectors.csv", index=False)

# Lists of two lengths.
pq.write_table(pa.table({"score": [[0.5, 0.5], [0.25, 0.75], [0.25, 0.5, 0.25], [0.5]], "label": [0, 1, 1, 0]}),
               "uneven.parquet")

# Events: nested, a dictionary, times in nanoseconds with a zone, a missing score.
start = datetime.datetime(2026, 11, 1, 6, 30, tzinfo=datetime.timezone.utc)
times = [start + datetime.timedelta(milliseconds=700 * i) for i in range(60)]
scores = [None if i == 3 else z for i, (z, _) in enumerate(rows)]
pq.write_table(pa.table({
    "model": pa.array([f"m{i % 2}" for i in range(60)]).dictionary_encode(),
    "payload": pa.array([{"score": z, "user": f"u-{i}"} for i, z in enumerate(scores)]),
    "at": pa.array(times, pa.timestamp("ns", tz="Europe/Berlin")),
    "happened": pa.array([y for _, y in rows]),
}), "events.parquet", compression="gzip")
with open("events.jsonl", "w") as out:
    for i, (z, (_, y)) in enumerate(zip(scores, rows)):
        at = times[i].isoformat(timespec="milliseconds").replace("+00:00", "Z")
        out.write(json.dumps({"model": f"m{i % 2}", "payload": {"score": z, "user": f"u-{i}"}, "at": at, "happened": y}) + "\n")
