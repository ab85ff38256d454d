import { unavailablePolicy } from '../support/unavailable-policy.ts';

export default unavailablePolicy('ignores a policy without max_age', {
  policy: 'version: STSv1\r\nmode: enforce\r\nmx: mx.elsewhere.example\r\n',
});
