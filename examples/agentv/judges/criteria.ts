// A code judge in TypeScript: whether the answer contains the case's criteria.
// It runs under Bun, or under Node.js 22.18 or later.
import { defineCodeJudge } from '@agentv/eval';

export default defineCodeJudge(({ candidateAnswer, criteria }) => {
  const holds: boolean = candidateAnswer.includes(criteria);
  const line = `${holds ? 'says' : 'does not say'} ${criteria}`;
  return { score: holds ? 1 : 0, hits: holds ? [line] : [], misses: holds ? [] : [line] };
});
