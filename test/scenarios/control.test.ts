import { registerScenarios } from './support/register.ts';

await registerScenarios('control');
