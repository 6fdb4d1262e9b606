// Loaded by Node.js before a judge that imports AgentV's SDK.
import { register } from 'node:module';

register('./resolve.mjs', import.meta.url);
