import { definePromptTemplate } from '@agentv/eval';

export default definePromptTemplate(({ question, candidateAnswer, criteria, config }) => `
The agent was asked:
${question}

It answered:
${candidateAnswer}

A good answer does this in at most ${config.sentences} sentences: ${criteria}
`);
