/**
 * Exports the runs of the Vercel AI SDK (6 and 7) in the Node programs that are recorded.
 *
 * The recorder has each Node program load this file first. It adds an integration to the list that
 * the SDK keeps, which needs neither packages nor a change of the agent, and it must never change
 * what the agent does: no error leaves it, and its syntax is that of Node 14. Each span is written
 * to a file when it ends, which a process that is killed has done, and which the recorder reads.
 */
"use strict";

const FOLDER_VARIABLE = "AGENTCI_SPANS_DIR";
const OPERATIONS = ["ai.generateText", "ai.streamText"];
const SCOPE = { name: "agentci.ai-sdk" };
const INTERNAL = 1;
const CLIENT = 3;
const ERROR = 2;

let file = process.env[FOLDER_VARIABLE];
const named = new Set();

function makeId(bytes) {
  return require("node:crypto").randomBytes(bytes).toString("hex");
}

function now() {
  return String(BigInt(Date.now()) * 1000000n);
}

/** Append a line of JSON to the file of this process. */
function write(content) {
  if (!file) return;
  try {
    require("node:fs").appendFileSync(file, `${JSON.stringify(content)}\n`);
  } catch {
    file = ""; // the recorder has ended
  }
}

function nameError(what, error) {
  const text = `${what}: ${error}`.slice(0, 300);
  if (named.has(text)) return;
  named.add(text);
  write({ error: text });
}

// Values

function makeValue(value) {
  if (typeof value === "number") {
    return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(makeValue) } };
  return { stringValue: typeof value === "string" ? value : JSON.stringify(value) };
}

function makeAttributes(attributes) {
  return Object.entries(attributes)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => ({ key, value: makeValue(value) }));
}

function makeParts(content) {
  if (typeof content === "string") return [{ type: "text", content }];
  return (content ?? []).flatMap((part) => {
    if (part.type === "text") return [{ type: "text", content: part.text }];
    if (part.type === "tool-call") {
      const { toolCallId: id, toolName: name, input } = part;
      return [{ type: "tool_call", id, name, arguments: input ?? {} }];
    }
    if (part.type === "tool-result") {
      return [{ type: "tool_call_response", id: part.toolCallId, response: getOutput(part) }];
    }
    return part.type === "reasoning" ? [] : [{ type: part.type }];
  });
}

/** The output of a tool as the model gets it: `{type: "text", value}`, or the value itself. */
function getOutput(part) {
  const output = part.output;
  const isWrapped = output && typeof output === "object" && "value" in output && "type" in output;
  return (isWrapped ? output.value : output) ?? null;
}

function makeMessages(messages) {
  return (messages ?? []).map(({ role, content }) => ({ role, parts: makeParts(content) }));
}

// Runs

/** One call of `generateText` or `streamText`. */
class Run {
  constructor() {
    this.traceId = makeId(16);
    this.rootId = makeId(8);
    this.began = now();
    this.isEnded = false;
    this.steps = new Map();
    this.tools = new Map();
    this.messages = [];
  }

  start(event) {
    // Others are embeddings, speech and the like.
    const operation = event.operationId || OPERATIONS[0];
    this.isEnded = !OPERATIONS.includes(operation);
    this.began = now();
    this.messages = event.messages ?? [];
  }

  startStep(event) {
    this.steps.set(event.stepNumber, { began: now(), messages: event.messages });
  }

  endStep(event) {
    const step = this.steps.get(event.stepNumber);
    if (!step) return; // AI SDK 7 calls both names of this event
    this.steps.delete(event.stepNumber);
    const calls = (event.content ?? []).filter((part) => part.type !== "tool-result");
    const usage = event.usage ?? {};
    const model = event.model?.modelId ?? event.response?.modelId;
    this.send(`chat ${model}`, makeId(8), this.rootId, CLIENT, step.began, {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": event.model?.provider,
      "gen_ai.request.model": model,
      "gen_ai.response.model": event.response?.modelId,
      "gen_ai.response.id": event.response?.id,
      "gen_ai.response.finish_reasons": [event.finishReason ?? "unknown"],
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.output_tokens": usage.outputTokens,
      "gen_ai.input.messages": JSON.stringify(makeMessages(step.messages)),
      "gen_ai.output.messages": JSON.stringify([{ role: "assistant", parts: makeParts(calls) }]),
    });
  }

  startTool(event) {
    this.tools.set(event.toolCall.toolCallId, now());
  }

  endTool(event) {
    const { toolCallId: id, toolName: name, input } = event.toolCall;
    const began = this.tools.get(id) ?? now();
    const output = event.toolOutput ?? event;
    const error = output.error;
    const result = error === undefined ? (output.output ?? null) : { error: String(error) };
    this.send(
      `execute_tool ${name}`,
      makeId(8),
      this.rootId,
      INTERNAL,
      began,
      {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": id,
        "gen_ai.tool.call.arguments": JSON.stringify(input ?? {}),
        "gen_ai.tool.call.result": JSON.stringify(result),
      },
      error,
    );
  }

  end(event) {
    if (this.isEnded) return;
    this.isEnded = true;
    const answer = [{ role: "assistant", parts: makeParts(event.text ?? "") }];
    this.send("invoke_agent", this.rootId, "", INTERNAL, this.began, {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.input.messages": JSON.stringify(makeMessages(this.messages)),
      "gen_ai.output.messages": JSON.stringify(answer),
    });
  }

  send(name, spanId, parentSpanId, kind, began, attributes, error) {
    const span = {
      traceId: this.traceId,
      spanId,
      name,
      kind,
      startTimeUnixNano: began,
      endTimeUnixNano: now(),
      attributes: makeAttributes(attributes),
      ...(parentSpanId ? { parentSpanId } : {}),
      ...(error === undefined ? {} : { status: { code: ERROR, message: String(error) } }),
    };
    const resource = { attributes: makeAttributes({ "service.name": "ai-sdk" }) };
    const batch = { resource, scopeSpans: [{ scope: SCOPE, spans: [span] }] };
    write({ resourceSpans: [batch] });
  }
}

const LISTENERS = {
  onStepStart: "startStep",
  onStepFinish: "endStep",
  onStepEnd: "endStep",
  onToolCallStart: "startTool",
  onToolExecutionStart: "startTool",
  onToolCallFinish: "endTool",
  onToolExecutionEnd: "endTool",
  onFinish: "end",
  onEnd: "end",
};

/**
 * The integration. AI SDK 7 names the run in each event. AI SDK 6 does not, but reads the listeners
 * once per run, `onStart` first: so each run has listeners of its own.
 */
function makeIntegration() {
  const runs = new Map();
  let latest = new Run();
  const find = (event, own) => {
    if (event.callId === undefined) return own;
    if (!runs.has(event.callId)) runs.set(event.callId, new Run());
    return runs.get(event.callId);
  };
  const listen = (own, method) => (event) => {
    try {
      const run = find(event, own);
      run[method](event);
      if (run.isEnded) runs.delete(event.callId);
    } catch (error) {
      nameError("AI SDK", error);
    }
  };
  const integration = {
    get onStart() {
      latest = new Run();
      return listen(latest, "start");
    },
  };
  for (const [name, method] of Object.entries(LISTENERS)) {
    const get = () => listen(latest, method);
    Object.defineProperty(integration, name, { get, enumerable: true });
  }
  return integration;
}

if (file) {
  try {
    file = require("node:path").join(file, `${process.pid}-${makeId(8)}.jsonl`);
    const list = globalThis.AI_SDK_TELEMETRY_INTEGRATIONS || [];
    globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = list;
    list.push(makeIntegration());
  } catch (error) {
    nameError("start", error);
  }
}
