-- Asks for one file after the other in an order that scatters neighbours, beginning at the FROM-th of FILES.
local files = tonumber(os.getenv('FILES'))
local at = tonumber(os.getenv('FROM'))

function request()
  at = (at + 7919) % files
  return wrk.format('GET', string.format('/static/shelf-%03d/%06d.css', math.floor(at / 1000), at))
end
