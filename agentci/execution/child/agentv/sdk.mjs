// What judges import of AgentV's SDK.
import { readFileSync } from 'node:fs';

// Below these keys stands what users wrote: its own keys stay what they are.
const USERS = new Set([
  'input', 'output', 'content', 'config', 'metadata', 'details',
  'tool_calls_by_name', 'toolCallsByName', 'tool_durations', 'toolDurations',
]);

const camel = (key) => key.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());

function renamed(value) {
  if (Array.isArray(value)) return value.map(renamed);
  if (value === null || typeof value !== 'object') return value;
  const fields = Object.entries(value).map(([key, each]) => [
    camel(key),
    USERS.has(key) ? each : renamed(each),
  ]);
  return Object.fromEntries(fields);
}

// In AgentV 4 `input` and `output` at the top are messages and the answer, and stay as they are.
const told = () => renamed(JSON.parse(readFileSync(0, 'utf8')));
const message = (error) => (error instanceof Error ? error.message : String(error));
// What a function returned, if it is of the type that was asked of it.
const checked = (value, type, whose, what) => {
  if (typeof value === type && value !== null) return value;
  throw new TypeError(`${whose} returned ${value === null ? value : typeof value}, not ${what}`);
};
const clamped = (score) => (Number.isFinite(score) ? Math.min(Math.max(score, 0), 1) : score);

export async function defineCodeJudge(judge) {
  try {
    const result = checked(await judge(told()), 'object', 'the judge', 'a result');
    console.log(JSON.stringify({ ...result, score: clamped(result.score) }, null, 2));
  } catch (error) {
    const reasoning = `Evaluation failed: ${message(error)}`;
    console.log(JSON.stringify({ score: 0, hits: [], misses: [message(error)], reasoning }, null, 2));
    process.exitCode = 1;
  }
}

export const defineCodeGrader = defineCodeJudge;

// An assertion may say `pass` in place of a score.
export const defineAssertion = (assertion) =>
  defineCodeJudge(async (input) => {
    const { pass, ...result } = checked(await assertion(input), 'object', 'the judge', 'a result');
    return { ...result, score: result.score ?? (pass ? 1 : 0) };
  });

export async function definePromptTemplate(render) {
  try {
    process.stdout.write(checked(await render(told()), 'string', 'the template', 'a text'));
  } catch (error) {
    console.error(message(error));
    process.exitCode = 1;
  }
}

export class TargetNotAvailableError extends Error {
  name = 'TargetNotAvailableError';
}

export class TargetInvocationError extends Error {
  name = 'TargetInvocationError';

  constructor(message, statusCode) {
    super(message);
    this.statusCode = statusCode;
  }
}

function complaint(status, text) {
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || `HTTP ${status}`;
  }
}

// Undefined for a judge without `target`.
export function createTargetClient() {
  const url = process.env.AGENTV_TARGET_PROXY_URL;
  const token = process.env.AGENTV_TARGET_PROXY_TOKEN;
  if (!url) return undefined;
  if (!token) {
    throw new TargetNotAvailableError('AGENTV_TARGET_PROXY_URL is set, AGENTV_TARGET_PROXY_TOKEN is not');
  }
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
  const call = async (method, path, body) => {
    const reply = await fetch(`${url}${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await reply.text();
    if (!reply.ok) throw new TargetInvocationError(complaint(reply.status, text), reply.status);
    return JSON.parse(text);
  };
  const asked = ({ question, systemPrompt, evalCaseId, attempt, target }) => (
    { question, systemPrompt, evalCaseId, attempt, target }
  );
  return {
    invoke: (request) => call('POST', '/invoke', asked(request)),
    invokeBatch: async (requests) => (
      (await call('POST', '/invokeBatch', { requests: requests.map(asked) })).responses
    ),
    getInfo: () => call('GET', '/info'),
  };
}
