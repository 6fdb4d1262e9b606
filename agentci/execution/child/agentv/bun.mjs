// Loaded by Bun before a judge that imports AgentV's SDK where that is not installed.
import { plugin } from 'bun';
import * as exports from './sdk.mjs';

plugin({
  name: 'agentv',
  setup(build) {
    for (const name of ['@agentv/eval', '@agentv/sdk']) {
      build.module(name, () => ({ exports, loader: 'object' }));
    }
  },
});
