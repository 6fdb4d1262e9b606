// Answers for a small screen: 1 to `max_words` words.
import { readFileSync } from "node:fs";

type Invocation = { user_content: string; final_response: string | null };
type EvalInput = { config: { max_words?: number }; invocations: Invocation[] };
type EvalResult = { score: number; per_invocation_scores: number[]; details: { issues: string[] } };

function judge({ config, invocations }: EvalInput): EvalResult {
  const maxWords = config.max_words ?? 30;
  const issues: string[] = [];
  const scores = invocations.map((turn, index) => {
    const words = (turn.final_response ?? "").split(/\s+/).filter(Boolean).length;
    if (words > 0 && words <= maxWords) return 1;
    issues.push(`turn ${index + 1}: ${words} words, 1 to ${maxWords} are wanted`);
    return words === 0 ? 0 : maxWords / words;
  });
  const score = scores.reduce((sum, one) => sum + one, 0) / Math.max(scores.length, 1);
  return { score, per_invocation_scores: scores, details: { issues } };
}

console.log(JSON.stringify(judge(JSON.parse(readFileSync(0, "utf8")))));
