// Starts Qwen Code with the settings beside this file, on the task that MILO_TASK names.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const program = join(process.env.MILO_PACKAGES, "node_modules/@qwen-code/qwen-code/cli.js");

/** A file beside this one, or "" where there is none. */
function text(name) {
  const path = join(here, name);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** Run the program to its end, with what it prints passed on; its exit code. */
function run(args) {
  cpSync(join(here, "home"), join(homedir(), ".qwen"), { recursive: true });
  const env = { ...process.env, OPENAI_MODEL: process.env.MILO_MODEL, NO_COLOR: "1" };
  const done = spawnSync(process.execPath, [program, ...args], {
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  return done.status ?? 1;
}

/** The words that make it work on a task without a person. */
function asked(task) {
  const args = ["--auth-type", "openai", "--yolo", "--output-format", "text"];
  args.push("-m", process.env.MILO_MODEL, "-p", task);
  if (text("system.md")) args.push("--system-prompt", text("system.md"));
  if (text("append.md")) args.push("--append-system-prompt", text("append.md"));
  return args;
}

if (process.argv.includes("--smoke")) {
  JSON.parse(text("home/settings.json"));
  process.exit(run(["--version"]));
}
process.exit(run(asked(readFileSync(process.env.MILO_TASK, "utf8"))));
