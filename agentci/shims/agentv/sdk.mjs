// What judges import of AgentV's SDK, as far as it needs no language model.
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
const clamped = (score) => (Number.isFinite(score) ? Math.min(Math.max(score, 0), 1) : score);

export async function defineCodeJudge(judge) {
  try {
    const result = await judge(told());
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
    const { pass, ...result } = await assertion(input);
    return { ...result, score: result.score ?? (pass ? 1 : 0) };
  });

export async function definePromptTemplate(render) {
  try {
    process.stdout.write(await render(told()));
  } catch (error) {
    console.error(message(error));
    process.exitCode = 1;
  }
}

// Nothing gives judges access to a language model yet.
export const createTargetClient = () => undefined;
