-- Errors of webhook calls that got no response named resolved addresses and resolvers: accounts read them.
UPDATE webhook_deliveries SET error = 'the call failed'
WHERE response_code IS NULL AND error IS NOT NULL AND error NOT LIKE 'no answer within %'
  AND error NOT IN ('a fault of the service', 'the event is past its retention');
