"""Builds the fake broker's program and starts it, for the scripts beside this."""
import contextlib, os, pathlib, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
USER = "admin:admin-secret"


@contextlib.contextmanager
def started(*options, version=None):
    """A fake of three nodes with a SASL listener, which takes unsecured bearer tokens as a real Kafka does: what it
    says of itself, such as BOOTSTRAP and SASL_BOOTSTRAP."""
    subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", "krafka-fake-broker"], cwd=ROOT, check=True)
    command = [TARGET / "debug/krafka-fake-broker", "--nodes", "3", "--sasl", USER, "--oauthbearer", *options]
    if version:
        command += ["--as-version", version]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        told = {}
        for line in process.stdout:
            name, _, value = line.strip().partition("=")
            told[name] = value
            if name == "BOOTSTRAP":
                break
        if "BOOTSTRAP" not in told:
            sys.exit(f"the fake does not say that it is ready: {told}")
        yield told
    finally:
        process.stdin.close()
        process.wait(10)
