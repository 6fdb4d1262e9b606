// A code judge in TypeScript: whether the answer says what the case asks for.
// It runs under Node.js 22.18 or later, and as well under Bun.
import { readFileSync } from 'node:fs';

type Told = { candidateAnswer: string; criteria: string };

const { candidateAnswer, criteria }: Told = JSON.parse(readFileSync(0, 'utf8'));
const holds: boolean = candidateAnswer.includes(criteria);
const line = `${holds ? 'says' : 'does not say'} ${criteria}`;
console.log(JSON.stringify({ score: holds ? 1 : 0, [holds ? 'hits' : 'misses']: [line] }));
