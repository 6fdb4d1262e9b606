// Resolves AgentV's SDK to the installed package, otherwise to the replacement in this folder.
const SDKS = new Set(['@agentv/eval', '@agentv/sdk']);
const REPLACEMENT = new URL('./sdk.mjs', import.meta.url).href;

export async function resolve(specifier, context, next) {
  if (!SDKS.has(specifier)) return next(specifier, context);
  try {
    return await next(specifier, context);
  } catch {
    return { url: REPLACEMENT, format: 'module', shortCircuit: true };
  }
}
