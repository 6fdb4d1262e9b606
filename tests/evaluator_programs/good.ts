// Types are stripped by Node itself.
import { readFileSync } from "node:fs";

interface Turn {
  final_response: string | null;
}

const input: { invocations: Turn[] } = JSON.parse(readFileSync(0, "utf8"));
const answered: number = input.invocations.filter((turn: Turn) => turn.final_response).length;

console.log(JSON.stringify({ score: answered / input.invocations.length }));
