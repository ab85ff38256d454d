import { registerScenarios } from './support/register.ts';

await registerScenarios('postfix', { programs: ['postfix'] });
