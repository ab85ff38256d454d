import { selfSigned } from '../support/certificates.ts';
import { registerScenarios } from './support/register.ts';
import { BOGUS_ZONE, bogusZone } from './support/signed-destination.ts';

await registerScenarios('dane', {
  programs: ['knot', 'unbound', 'root'],
  policyHost: true,
  signedZones: () => bogusZone(selfSigned(['mx.example'])),
  bogusZones: [BOGUS_ZONE],
});
