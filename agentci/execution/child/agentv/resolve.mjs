// Finds AgentV's SDK where the judge's repository has it installed, else our stand-in.
const SDKS = new Set(['@agentv/eval', '@agentv/sdk']);
const STAND_IN = new URL('./sdk.mjs', import.meta.url).href;

export async function resolve(specifier, context, next) {
  if (!SDKS.has(specifier)) return next(specifier, context);
  try {
    return await next(specifier, context);
  } catch {
    return { url: STAND_IN, format: 'module', shortCircuit: true };
  }
}
