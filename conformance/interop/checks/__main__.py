"""Runs one check in this process: python -m checks JOB.json. The verdict goes to the file that the job names."""
import json, pathlib, sys, traceback
from . import lib
import checks.all  # noqa: F401  (fills the registry)

job = json.loads(pathlib.Path(sys.argv[1]).read_text())
apis = {int(k): tuple(v) for k, v in job["apis"].items()}
ctx = lib.Ctx(job["name"], job["bootstrap"], job["run"], apis, job["options"], job["scale"], job["step"])
try:
    note = lib.CHECKS[job["name"]].run(ctx)
    verdict = ("PASS", note or "")
except lib.Skip as e:
    verdict = ("SKIP", str(e))
except lib.Fail as e:
    traceback.print_exc()
    verdict = ("FAIL", str(e))
except BaseException as e:
    traceback.print_exc()
    verdict = ("FAIL", f"{type(e).__name__}: {e}")
pathlib.Path(job["verdict"]).write_text(json.dumps((*verdict, ctx.said)))
sys.stdout.flush()
# librdkafka's threads may hang on a broken broker; the verdict is written, so end here.
import os
os._exit(0)
