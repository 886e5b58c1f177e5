// Runs a module of this package in Node.js: node run.mjs MODULE.wasm
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const module = await WebAssembly.compile(await readFile(process.argv[2]));
const imports = new Set(WebAssembly.Module.imports(module).map((one) => one.module));

let instance;
if (imports.size === 0) {
    instance = await WebAssembly.instantiate(module);
} else {
    // The module needs WASI and nothing else: no JavaScript that some tool would have to generate.
    assert.deepEqual([...imports], ["wasi_snapshot_preview1"]);
    const { WASI } = await import("node:wasi");
    const wasi = new WASI({ version: "preview1", env: process.env });
    instance = await WebAssembly.instantiate(module, wasi.getImportObject());
    if (instance.exports._start) {
        // A program, with the variables of this one's environment.
        process.exit(wasi.start(instance));
    }
    wasi.initialize(instance);
}

// The sum of the squares below 100.
assert.equal(instance.exports.exercise(), 328350n);
console.log(imports.size === 0 ? "nothing is measured, and nothing panics" : "calls are measured");
